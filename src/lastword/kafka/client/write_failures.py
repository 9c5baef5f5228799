"""Why a write was not acknowledged.

librdkafka repeats a write until the time is over, and then reports only that. So the cluster is asked for the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from lastword.core.errors import ClusterUnreachable, LastwordError, NotEnoughReplicas, NotFound
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import leader_of
from lastword.kafka.client.live_settings import described_settings, settings_of

_LOOK_S = 5.0
_MIN_IN_SYNC = "min.insync.replicas"


class WriteFailures:
    """Why the writes of one batch were not acknowledged; asks the cluster once for all of them."""

    def __init__(self, admin: AdminClient, topic: str, answered: Callable[[Future[Any]], Any]) -> None:
        """`answered` waits for an answer of the cluster, and raises a LastwordError if none comes."""
        self._admin = admin
        self._topic = topic
        self._answered = answered

    def of(self, error: KafkaError, where: str, partition: int | None) -> LastwordError:
        """The LastwordError of a failed write; if librdkafka names no cause, with the cause that the cluster shows.

        `partition` is None, as in librdkafka's messages, for a record that has no partition yet.
        """
        if error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
            return self._cause(partition) or translated(error, where)
        if error.code() in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            return self._cause(partition) or NotEnoughReplicas(f"{where}: {error.str()}: is every broker up?")
        return translated(error, where)

    def _cause(self, partition: int | None) -> LastwordError | None:
        """Why writes to a partition fail (to any partition, for None); None when no cause is seen."""
        if isinstance(self._partitions, NotFound):
            return self._partitions
        partitions = [each for each in self._partitions if partition is None or each.id == partition]
        if (away := next((each for each in partitions if leader_of(each) is None), None)) is not None:
            return ClusterUnreachable(
                f"writing to {self._topic}: partition {away.id} has no leader (replicas on brokers "
                f"{_ids(away.replicas)}): start those brokers;  lastword broker status"
            )
        if not partitions or (least := self._least_in_sync) is None:
            return None
        short = next((each for each in partitions if len(each.isr) < least), None)
        return None if short is None else _not_enough(self._topic, short, least)

    @cached_property
    def _partitions(self) -> list[Any] | NotFound:
        """The partitions as the cluster describes them, none when nobody answers; NotFound without the topic."""
        futures = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_LOOK_S)
        try:
            return list(self._answered(futures[self._topic]).partitions)
        except NotFound as gone:
            return gone
        except LastwordError:
            return []

    @cached_property
    def _least_in_sync(self) -> int | None:
        """None without the right to see the settings."""
        futures = described_settings(self._admin, [self._topic])
        try:
            return int(settings_of(self._answered(futures[self._topic]))[_MIN_IN_SYNC].value)
        except (LastwordError, KeyError, ValueError):
            return None


def fatal_cause(producer: Producer, failure: KafkaException) -> KafkaException:
    """The failure, or its cause: a producer reports only that it can't continue, and `poll` gives the cause, once."""
    if failure.args[0].code() != KafkaError._FATAL:
        return failure
    try:
        producer.poll(0)
    except KafkaException as cause:
        return cause
    return failure


def _not_enough(topic: str, partition: Any, least: int) -> NotEnoughReplicas:
    absent = {node.id for node in partition.replicas} - {node.id for node in partition.isr}
    count = len(partition.isr)
    what = (
        f"writing to {topic}: NotEnoughReplicas: partition {partition.id} has {count} in-sync "
        f"replica{'' if count == 1 else 's'} (brokers {_ids(partition.isr)}), {_MIN_IN_SYNC} is {least}"
    )
    if absent and least <= len(partition.replicas):
        brokers = ", ".join(map(str, sorted(absent)))
        return NotEnoughReplicas(
            f"{what}: start broker {brokers}, or lower it:  lastword topic alter {topic} --set {_MIN_IN_SYNC}={count}"
        )
    return NotEnoughReplicas(f"{what}: lower it:  lastword topic alter {topic} --set {_MIN_IN_SYNC}={count}")


def _ids(nodes: list[Any]) -> str:
    return ", ".join(str(node.id) for node in nodes)
