"""A topic right now: its settings and who set each; of each partition its brokers, offsets and bytes on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.kafka.client.admin_types import OffsetSpec
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection, leader_of
from lastword.kafka.client.live_settings import SettingNow, answer, described_settings, settings_now
from lastword.kafka.topics.cleanup_policy import CLEANUP_POLICY, CleanupPolicy, cleanup_policy
from lastword.kafka.topics.log_dirs import sizes_on_disk
from lastword.kafka.topics.topic_names import is_internal

# Deleted since its name was read, or hidden from this user: either way it does not exist for the user.
NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED)

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, kw_only=True)
class PartitionDescription:
    """One partition. Offsets and bytes are the leader's: None while there is no leader.

    `end_offset` is the high watermark. `stable_offset` is where a reader of committed data ends: it is less than the
    end while a transaction is open.
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    stable_offset: int | None
    bytes_on_disk: int | None


@dataclass(frozen=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: str
    # Empty where the cluster does not let us read them: every topic has some.
    settings: Mapping[str, SettingNow]
    partitions: tuple[PartitionDescription, ...]
    # Why every bytes_on_disk is None, when the cluster does not give the sizes.
    no_sizes_because: str | None

    @property
    def replication(self) -> int:
        return max(len(partition.replicas) for partition in self.partitions)

    @property
    def cleanup_policy(self) -> CleanupPolicy | None:
        """None where the settings are not known."""
        return cleanup_policy(self.settings) if CLEANUP_POLICY in self.settings else None

    @property
    def bytes_on_disk(self) -> int | None:
        """The bytes of one copy of the topic, or None when a partition's are not known."""
        return total([partition.bytes_on_disk for partition in self.partitions])

    @property
    def end(self) -> int | None:
        """The sum of its end offsets: what grows by one with every record."""
        return total([partition.end_offset for partition in self.partitions])

    @property
    def start_to_end(self) -> int | None:
        """How many records it has at most: compaction and transactions leave offsets without one."""
        end, start = self.end, total([partition.start_offset for partition in self.partitions])
        return None if end is None or start is None else end - start


@dataclass(frozen=True, kw_only=True)
class ListedTopic:
    name: str
    topic_id: str
    partitions: int
    replication: int
    # None when the cluster does not let us read the topic's settings.
    cleanup_policy: str | None


def describe_topic(connection: Connection, name: str) -> TopicDescription:
    """Everything about a topic that is known without reading its records; NotFound when there is no such topic."""
    admin = connection.admin()
    connection.topic(name, admin)
    where = f"topic {name!r}"
    described = answer(described_topics(connection, admin, [name])[name], where)
    settings = settings_now(admin, name)
    partitions = {info.id: info for info in described.partitions}
    # No broker answers for a partition without a leader, and a request for it would fail those of all other partitions.
    led = [partition for partition, info in partitions.items() if leader_of(info) is not None]
    starts = offsets(connection, admin, name, led, EARLIEST)
    ends = offsets(connection, admin, name, led, LATEST)
    stable = committed_ends(connection, admin, name, led)
    sizes, no_sizes_because = _sizes(connection, name)
    return TopicDescription(
        name=name,
        topic_id=str(described.topic_id),
        settings=settings,
        partitions=tuple(
            partition_of(info, starts.get(p), ends.get(p), stable.get(p), sizes.get(p, {}))
            for p, info in sorted(partitions.items())
        ),
        no_sizes_because=no_sizes_because,
    )


def partition_of(
    info: Any, start: int | None, end: int | None, stable: int | None, sizes: Mapping[int, int]
) -> PartitionDescription:
    """A partition as the cluster describes it, with its offsets and its size on each broker."""
    leader = leader_of(info)
    return PartitionDescription(
        partition=info.id,
        leader=leader,
        replicas=tuple(node.id for node in info.replicas),
        in_sync=tuple(sorted(node.id for node in info.isr)),
        start_offset=start,
        end_offset=end,
        stable_offset=stable,
        bytes_on_disk=None if leader is None else sizes.get(leader),
    )


def list_topics(connection: Connection, *, internal: bool = False) -> list[ListedTopic]:
    """Every topic by name; those that start with `__` only if `internal`."""
    admin = connection.admin()
    names = sorted(name for name in connection.reach(admin).topics if internal or not is_internal(name))
    if not names:
        return []
    described = described_topics(connection, admin, names)
    configured = described_settings(admin, names)
    listed = []
    for name in names:
        try:
            topic = described[name].result()
        except KafkaException as failure:
            if failure.args[0].code() in NOT_THERE:
                continue
            raise translated(failure, f"topic {name!r}") from None
        listed.append(
            ListedTopic(
                name=name,
                topic_id=str(topic.topic_id),
                partitions=len(topic.partitions),
                replication=max(len(partition.replicas) for partition in topic.partitions),
                cleanup_policy=_cleanup_policy(configured[name]),
            )
        )
    return listed


def offsets(
    connection: Connection,
    admin: AdminClient,
    topic: str,
    partitions: Iterable[int],
    spec: OffsetSpec,
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[int, int]:
    """The answer of the leader of each partition for `spec`; ClusterUnreachable if a partition has no leader."""
    requests = {TopicPartition(topic, partition): spec for partition in partitions}
    if not requests:
        return {}
    answers = admin.list_offsets(requests, isolation_level=isolation, request_timeout=connection.patience_s)
    by_partition = {}
    for each, future in answers.items():
        where = f"offsets of {topic}[{each.partition}]"
        offset = answer(future, where).offset
        if offset < 0:
            # Kafka's answer instead of an error while the partition changes its leader.
            raise ClusterUnreachable(f"{where}: no leader answers: is every broker up?  lastword broker status")
        by_partition[each.partition] = offset
    return by_partition


def committed_ends(connection: Connection, admin: AdminClient, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The last stable offsets: readers of committed data see the records before them."""
    return offsets(connection, admin, topic, partitions, LATEST, isolation=IsolationLevel.READ_COMMITTED)


def described_topics(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, Future[Any]]:
    return admin.describe_topics(TopicCollection(names), request_timeout=connection.patience_s)


def total(numbers: Sequence[int | None]) -> int | None:
    """The sum; None when one of them is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _cleanup_policy(entries: Future[Any]) -> str | None:
    try:
        return str(entries.result()[CLEANUP_POLICY].value)
    except KafkaException:
        return None


def _sizes(connection: Connection, name: str) -> tuple[dict[int, dict[int, int]], str | None]:
    try:
        return sizes_on_disk(connection, name), None
    except LastwordError as refusal:
        return {}, str(refusal)
