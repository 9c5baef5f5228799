"""A counted topic: followed from the end of its count, and never mistaken for a later topic of the same name.

`serve` may have a replica of `team_stats`, too, but the board reads the topic itself. A replica gives changes of rows,
and the board counts records. A record without a key is refused by the board, and changes no row. For a key in two
partitions a change has the shown row instead of the record. A replica that is rebuilt, or that sweeps, gives the newest
row of a key instead of every record. So refused records, reset counters and missed offsets would be lost.
"""

from __future__ import annotations

import time

from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed
from lastword.kafka.topics.topic_snapshot import TopicProbe, TopicSnapshot
from lastword.teams.board.reader_view import ReaderView
from lastword.teams.board.tally import JudgedRecord, PartitionStart, SourcePartition

_LOOK_EVERY_S = 5.0


class CountedTopic:
    """Gives a tally only records of the topic whose identity is in the count."""

    def __init__(self, connection: Connection, topic: str, probe: TopicProbe | None = None) -> None:
        self.topic = topic
        self._connection = connection
        self._probe = TopicProbe(connection, topic) if probe is None else probe
        self._feed: Feed | None = None
        self._seen: TopicSnapshot | None = None
        self._at_end: set[int] = set()
        self._look_at = 0.0

    @property
    def is_at_end(self) -> bool:
        """Whether, at some moment since the last start, all records of that moment had been read."""
        return self._feed is not None and self._at_end >= self._feed.partitions

    def poll(self, view: ReaderView, patience_s: float) -> bool:
        """Counts the records that came; False if none came. LastwordError while the topic or the cluster is away."""
        if self._feed is None or self._seen is None:
            self._start(view)
            return True
        identity = self._seen.topic_id
        try:
            batch = self._feed.poll(patience_s)
            is_another = bool(batch.records) and self._probe.identity() != identity
        except LastwordError:
            # The feed has passed records that are not counted. The next feed starts at the end of the count.
            self.close()
            raise
        if is_another:
            # The records are of a new topic, at offsets of the old one. The identity was asked for after they came, so
            # records that came before are of the topic that was counted.
            self._start(view)
            return True
        for record in batch.records:
            view.take(JudgedRecord.of(self.topic, identity, record))
        for partition, offset in batch.reached.items():
            view.reach(SourcePartition(self.topic, partition), identity, offset)
        self._at_end = (self._at_end - {record.partition for record in batch.records}) | batch.at_end
        if batch.past_moved is not None:
            self._start(view)
        elif batch.doubtful or time.monotonic() >= self._look_at:
            self._look(view)
        return bool(batch.records)

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def _look(self, view: ReaderView) -> None:
        before, snapshot = self._seen, self._probe.look()
        if before is None or snapshot.topic_id != before.topic_id or snapshot.start.keys() != before.start.keys():
            self._start(view, snapshot)
        self._seen = snapshot
        self._look_at = time.monotonic() + _LOOK_EVERY_S

    def _start(self, view: ReaderView, snapshot: TopicSnapshot | None = None) -> None:
        """Follows the present topic from the end of the count."""
        self.close()
        self._at_end = set()
        before, snapshot = self._seen, snapshot or self._probe.look()
        ends = {} if before is None else before.high
        position = {}
        for partition, start in snapshot.start.items():
            place = SourcePartition(self.topic, partition)
            log = PartitionStart(place, snapshot.topic_id, start, snapshot.high[partition], ends.get(partition, 0))
            position[partition] = view.begin(log)
        feed = Feed(self._connection, self.topic)
        feed.add(position, {})
        self._feed, self._seen = feed, snapshot
        self._look_at = time.monotonic() + _LOOK_EVERY_S
