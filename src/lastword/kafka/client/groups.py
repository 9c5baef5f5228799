"""Consumer groups: a position committed in the name of a group, so that every tool for groups shows its lag."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError
from lastword.core.position import Position
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection

_TAKEN = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.NON_EMPTY_GROUP)
# While the cluster makes its topic of groups, or moves a part of it to another broker.
_PASSING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


class GroupPosition:
    """The committed position of a group without members."""

    def __init__(self, connection: Connection, group: str) -> None:
        if not group:
            raise BadInput("the name of the consumer group is empty: give a name, or leave it out")
        self._group = group
        self._connection = connection
        self._patience_s = connection.patience_s
        # Not a consumer: a consumer can't be given a time limit for finding the group's coordinator.
        self._admin = connection.admin()

    def commit(self, positions: Mapping[str, Position]) -> None:
        """Commits a position of each topic and returns when Kafka has it; after an error it may be called again."""
        places = [
            TopicPartition(topic, partition, offset)
            for topic, position in positions.items()
            for partition, offset in position.items()
        ]
        if not places:
            return
        commits = [ConsumerGroupTopicPartitions(self._group, places)]
        give_up_at = time.monotonic() + self._patience_s
        while (refused := self._refused(commits)) is not None:
            error, place = refused
            if error.code() not in _PASSING or time.monotonic() >= give_up_at:
                raise self._error(error, place)
            time.sleep(0.1)

    def _refused(self, commits: list[ConsumerGroupTopicPartitions]) -> tuple[KafkaError, str] | None:
        """The first error and its partition; None when everything was committed."""
        try:
            answers = self._admin.alter_consumer_group_offsets(commits, request_timeout=self._patience_s)
            committed = answers[self._group].result()
        except KafkaException as failure:
            # A client that asked while the cluster was away never finds the group's coordinator again.
            self._admin = self._connection.admin()
            return failure.args[0], ""
        errors = ((p.error, f", {p.topic}[{p.partition}]") for p in committed.topic_partitions if p.error is not None)
        return next(errors, None)

    def _error(self, error: KafkaError, place: str) -> LastwordError:
        if error.code() in _TAKEN:
            return BadInput(f"the consumer group {self._group} has members that read and commit: give another name")
        where = f"committing the progress of the group {self._group}{place}"
        if error.code() in _PASSING:
            return ClusterUnreachable(f"{where}: {error.str()}: is every broker up?  lastword broker status")
        return translated(error, where)
