"""How far a streaming query has read, committed to a consumer group: its lag shows wherever groups are shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.position import Position
from lastword.kafka.client.groups import GroupPosition


class GroupProgress(StreamingQueryListener):
    """Commits the end of each batch after it was written. It listens from `listen` until its query has ended."""

    def __init__(self, spark: SparkSession, group: GroupPosition) -> None:
        self._spark = spark
        self._group = group
        # Held through each commit: a listener's thread and `follow` must not overtake one another.
        self._lock = threading.Lock()
        self._run_id: str | None = None
        # Events from before `follow`, which names our query.
        self._early: list[QueryProgressEvent | QueryTerminatedEvent] = []
        self._reached: dict[str, Position] = {}
        self._committed: dict[str, Position] = {}
        self._refusal: LastwordError | None = None

    def listen(self) -> None:
        self._spark.streams.addListener(self)

    def leave(self) -> None:
        self._spark.streams.removeListener(self)

    def follow(self, run_id: str) -> None:
        """From now on only the events of this query count, including its earlier events."""
        with self._lock:
            self._run_id = run_id
            early, self._early = self._early, []
            for event in early:
                self._take(event)

    def raise_refusal(self) -> None:
        """Raises why the group can't be committed to, if it is for good: the cluster may come back."""
        if self._refusal is not None:
            raise self._refusal

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Nothing has been read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing was read."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._arrived(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._arrived(event)

    def _arrived(self, event: QueryProgressEvent | QueryTerminatedEvent) -> None:
        with self._lock:
            if self._run_id is None:
                self._early.append(event)
            else:
                self._take(event)

    def _take(self, event: QueryProgressEvent | QueryTerminatedEvent) -> None:
        if isinstance(event, QueryProgressEvent):
            if str(event.progress.runId) == self._run_id:
                self._reached = end_positions(source.endOffset for source in event.progress.sources)
                self._commit()
        elif str(event.runId) == self._run_id:
            self._commit()
            self.leave()

    def _commit(self) -> None:
        reached = dict(self._reached)
        if reached == self._committed:
            return
        try:
            self._group.commit(reached)
        except ClusterUnreachable:
            # The next batch commits more than this one; and the end of the query tries once more.
            return
        except LastwordError as refusal:
            self._refusal = refusal
            return
        self._committed = reached


def end_positions(end_offsets: Iterable[str | None]) -> dict[str, Position]:
    """The position in each topic that a query's sources have reached, where two read one topic the earlier.

    Other sources than Kafka have no offsets that a group could hold, and are passed over.
    """
    reached: dict[str, dict[int, int]] = {}
    for text in end_offsets:
        offsets = json.loads(text) if text else None
        if not isinstance(offsets, dict):
            continue
        for topic, by_partition in offsets.items():
            if isinstance(by_partition, dict):
                of_topic = reached.setdefault(topic, {})
                for partition, offset in by_partition.items():
                    of_topic[int(partition)] = min(offset, of_topic.get(int(partition), offset))
    return {topic: Position(offsets) for topic, offsets in reached.items()}
