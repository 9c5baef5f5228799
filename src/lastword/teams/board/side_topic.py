"""A compacted topic with few rows that the board reads beside its sources, if the topic is there."""

from __future__ import annotations

import time

from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_snapshot import TopicProbe

_LOOK_EVERY_S = 2.0


class SideTopic:
    """The first partition of a topic, from `start` or from its first record; `is_another` once it was made again."""

    def __init__(self, connection: Connection, topic: str, start: int | None = None) -> None:
        self._connection = connection
        self._topic = topic
        self._start = start
        self._probe = TopicProbe(connection, topic)
        self._feed: Feed | None = None
        self._identity = ""
        self._look_at = 0.0
        self.is_another = False

    def poll(self) -> list[Record]:
        """The records that came since the last call; none while the topic is missing."""
        if time.monotonic() >= self._look_at:
            self._look()
        if self._feed is None:
            return []
        batch = self._feed.poll(0)
        if batch.past_moved is not None:
            self.close()
            self._start = None
        return batch.records

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def _look(self) -> None:
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        try:
            identity = self._probe.identity()
            if self._identity and identity != self._identity:
                self.is_another = True
                self.close()
                self._start = None
            if self._feed is None:
                start = log_bounds(self._connection, self._topic)[0][0] if self._start is None else self._start
                self._feed = Feed(self._connection, self._topic)
                self._feed.add({0: start}, {})
                self._identity = identity
        except LastwordError:
            return  # the topic is missing, or no broker answers: the next look tries again
