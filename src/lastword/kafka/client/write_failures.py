"""Why a write was not acknowledged.

librdkafka tries a write again and again, and at the end says only that the time is over. So the cluster is asked what
stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from lastword.core.errors import ClusterUnreachable, LastwordError, NotEnoughReplicas, NotFound
from lastword.kafka.client.connection import leader_of, translated
from lastword.kafka.client.live_settings import described_settings, settings_of

_LOOK_S = 5.0
_MIN_IN_SYNC = "min.insync.replicas"


class WriteFailures:
    """Why the writes of one batch were not acknowledged; the cluster is asked once for all of them."""

    def __init__(self, admin: AdminClient, topic: str, answered: Callable[[Future[Any]], Any]) -> None:
        """`answered` waits for an answer of the cluster, and raises one of our errors where none comes."""
        self._admin = admin
        self._topic = topic
        self._answered = answered

    def of(self, error: KafkaError, where: str, partition: int | None) -> LastwordError:
        """The error of a write as one of ours; where librdkafka names no cause, with the cause the cluster shows.

        A record that was not given a partition yet has None as `partition`, as librdkafka's messages do.
        """
        if error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
            return self._cause(partition) or translated(error, where)
        if error.code() in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            return self._cause(partition) or NotEnoughReplicas(f"{where}: {error.str()}: is every broker up?")
        return translated(error, where)

    def _cause(self, partition: int | None) -> LastwordError | None:
        """What stands in the way of writes to a partition (of any, for None); None when nothing is seen."""
        if isinstance(self._partitions, NotFound):
            return self._partitions
        wanted = [each for each in self._partitions if partition is None or each.id == partition]
        if (away := next((each for each in wanted if leader_of(each) is None), None)) is not None:
            return ClusterUnreachable(
                f"writing to {self._topic}: partition {away.id} has no leader (replicas on brokers "
                f"{_ids(away.replicas)}): start those brokers;  lastword broker status"
            )
        if not wanted or (least := self._least_in_sync) is None:
            return None
        short = next((each for each in wanted if len(each.isr) < least), None)
        return None if short is None else _not_enough(self._topic, short, least)

    @cached_property
    def _partitions(self) -> list[Any] | NotFound:
        """What the cluster says of the partitions, nothing when nobody answers; NotFound without the topic."""
        asked = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_LOOK_S)
        try:
            return list(self._answered(asked[self._topic]).partitions)
        except NotFound as gone:
            return gone
        except LastwordError:
            return []

    @cached_property
    def _least_in_sync(self) -> int | None:
        """None where the settings can't be seen."""
        asked = described_settings(self._admin, [self._topic])
        try:
            return int(settings_of(self._answered(asked[self._topic]))[_MIN_IN_SYNC].value)
        except (LastwordError, KeyError, ValueError):
            return None


def fatal_cause(producer: Producer, failure: KafkaException) -> KafkaException:
    """The failure, or its cause, where a producer says only that it can't go on: the cause comes up in `poll`, once."""
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
        told = ", ".join(map(str, sorted(absent)))
        return NotEnoughReplicas(
            f"{what}: start broker {told}, or lower it:  lastword topic alter {topic} --set {_MIN_IN_SYNC}={count}"
        )
    return NotEnoughReplicas(f"{what}: lower it:  lastword topic alter {topic} --set {_MIN_IN_SYNC}={count}")


def _ids(nodes: list[Any]) -> str:
    return ", ".join(str(node.id) for node in nodes)
