"""A topic at one moment: its identity, where its log starts and ends, how long tombstones stay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lastword.core.clock import now_ms
from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now, topic_identity
from lastword.kafka.topics.topic_description import EARLIEST, LATEST, committed_ends, offsets


@dataclass(frozen=True, kw_only=True)
class TopicSnapshot:
    cluster_id: str
    topic_id: str
    delete_retention_ms: int
    start: Position
    # The last stable offsets: where a reader of committed data ends.
    stable: Position
    # The high watermarks: past the stable offsets while a transaction is open.
    high: Position

    @property
    def offsets_to_read(self) -> int:
        """How many offsets a reader of committed data has to pass, from the start to the end."""
        return sum(end - self.start[partition] for partition, end in self.stable.items())


class PendingProbe:
    """A look that runs in another thread: a broker that dies can make the look wait for long."""

    def __init__(self, look: Callable[[], TopicSnapshot]) -> None:
        self.asked_at = now_ms()
        self._look = look
        self._outcome: TopicSnapshot | LastwordError | None = None
        threading.Thread(target=self._run, name="topic-probe", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._outcome is not None

    def result(self) -> TopicSnapshot:
        """The snapshot, or the error of a look that failed; only when the look is over."""
        if isinstance(self._outcome, TopicSnapshot):
            return self._outcome
        raise self._outcome or LastwordError("the look is not over")

    def _run(self) -> None:
        try:
            self._outcome = self._look()
        except LastwordError as failure:
            self._outcome = failure
        except Exception as surprise:
            self._outcome = LastwordError(f"looking at the topic: {type(surprise).__name__}: {surprise}")


class TopicProbe:
    """Takes snapshots of one topic, over one connection."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._admin = connection.admin()

    def look_in_background(self) -> PendingProbe:
        return PendingProbe(self.look)

    def identity(self) -> str:
        """The id of the topic now; NotFound when there is none. A cheap request, for frequent use."""
        return topic_identity(self._admin, self._topic)

    def look(self) -> TopicSnapshot:
        """The topic now; NotFound when there is none, ClusterUnreachable when a partition has no leader."""
        connection, admin, topic = self._connection, self._admin, self._topic
        cluster = connection.reach(admin)
        partitions = sorted(connection.topic_in(cluster, topic).partitions)
        return TopicSnapshot(
            cluster_id=str(cluster.cluster_id),
            topic_id=topic_identity(admin, topic),
            delete_retention_ms=int(settings_now(admin, topic)["delete.retention.ms"].value),
            start=Position(offsets(connection, admin, topic, partitions, EARLIEST)),
            # Before the stable offsets, which are then less only where a transaction is open.
            high=Position(offsets(connection, admin, topic, partitions, LATEST)),
            stable=Position(committed_ends(connection, admin, topic, partitions)),
        )
