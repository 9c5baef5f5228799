"""A topic that is counted: followed from where its count stands, and told apart from a later one of its name."""

from __future__ import annotations

import time

from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed
from lastword.kafka.topics.topic_snapshot import TopicProbe, TopicSnapshot
from lastword.teams.board.reader_view import Shown
from lastword.teams.board.tally import Begun, JudgedRecord, SourcePartition

_LOOK_EVERY_S = 5.0


class CountedTopic:
    """Everything that it gives to a tally is of the topic whose identity is in the count."""

    def __init__(self, connection: Connection, topic: str, lookout: TopicProbe | None = None) -> None:
        self.topic = topic
        self._connection = connection
        self._lookout = TopicProbe(connection, topic) if lookout is None else lookout
        self._feed: Feed | None = None
        self._present: TopicSnapshot | None = None
        self._at_end: set[int] = set()
        self._look_at = 0.0

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read that was there at some moment since the last begin."""
        return self._feed is not None and self._at_end >= self._feed.partitions

    def hear(self, shown: Shown, patience_s: float) -> bool:
        """Counts what came; whether anything did. LastwordError while the topic or the cluster is away."""
        if self._feed is None or self._present is None:
            self._begin(shown)
            return True
        identity = self._present.topic_id
        try:
            heard = self._feed.poll(patience_s)
            is_another = bool(heard.records) and self._lookout.identity() != identity
        except LastwordError:
            # The feed has passed records that are not counted. The next one begins where the count stands.
            self.close()
            raise
        if is_another:
            # Records of a new topic, at the offsets of the old one. Asked after they came: what came before is ours.
            self._begin(shown)
            return True
        for record in heard.records:
            shown.take(JudgedRecord.of(self.topic, identity, record))
        for partition, offset in heard.reached.items():
            shown.reach(SourcePartition(self.topic, partition), identity, offset)
        self._at_end = (self._at_end - {record.partition for record in heard.records}) | heard.at_end
        if heard.past_moved is not None:
            self._begin(shown)
        elif heard.doubtful or time.monotonic() >= self._look_at:
            self._look(shown)
        return bool(heard.records)

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def _look(self, shown: Shown) -> None:
        known, found = self._present, self._lookout.look()
        if known is None or found.topic_id != known.topic_id or found.start.keys() != known.start.keys():
            self._begin(shown, found)
        self._present = found
        self._look_at = time.monotonic() + _LOOK_EVERY_S

    def _begin(self, shown: Shown, found: TopicSnapshot | None = None) -> None:
        """Goes on where the count stands, in the topic as it is now."""
        self.close()
        self._at_end = set()
        before, found = self._present, found or self._lookout.look()
        ends = {} if before is None else before.high
        position = {}
        for partition, start in found.start.items():
            place = SourcePartition(self.topic, partition)
            begun = Begun(place, found.topic_id, start, found.high[partition], ends.get(partition, 0))
            position[partition] = shown.begin(begun)
        feed = Feed(self._connection, self.topic)
        feed.add(position, {})
        self._feed, self._present = feed, found
        self._look_at = time.monotonic() + _LOOK_EVERY_S
