"""What a whole cluster is right now, by few questions: its brokers, and every topic with offsets, settings and sizes.

The metadata say whether anybody answers. What else is not answered (a right is missing, a topic vanished meanwhile, a
partition goes from one leader to the next) is told as not known: one topic's trouble must not hide all the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lastword.core.errors import LastwordError
from lastword.kafka.client.admin_types import OffsetSpec
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection, leader_of
from lastword.kafka.client.live_settings import SettingNow, described_settings, settings_of
from lastword.kafka.topics.log_dirs import Sizes, all_sizes_on_disk
from lastword.kafka.topics.topic_description import (
    EARLIEST,
    LATEST,
    NOT_THERE,
    TopicDescription,
    described_topics,
    partition_of,
)
from lastword.kafka.topics.topic_names import is_internal

_log = logging.getLogger(__name__)

# For each topic and partition.
_Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True, kw_only=True)
class Broker:
    node_id: int
    address: str


@dataclass(frozen=True, kw_only=True)
class ClusterDescription:
    cluster_id: str
    brokers: tuple[Broker, ...]
    controller: int | None
    # By name, without Kafka's own.
    topics: Mapping[str, TopicDescription]


def describe_cluster(connection: Connection, admin: AdminClient) -> ClusterDescription:
    """The cluster as its metadata show it to this user; ClusterUnreachable when nobody answers."""
    metadata = connection.reach(admin)
    names = sorted(name for name in metadata.topics if not is_internal(name))
    return ClusterDescription(
        cluster_id=str(metadata.cluster_id),
        brokers=tuple(
            Broker(node_id=broker.id, address=f"{broker.host}:{broker.port}")
            for broker in sorted(metadata.brokers.values(), key=lambda each: each.id)
        ),
        controller=metadata.controller_id if metadata.controller_id >= 0 else None,
        topics=_topics(connection, admin, names) if names else {},
    )


def _topics(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, TopicDescription]:
    found = _found(connection, admin, names)
    led = [(name, info.id) for name, topic in found.items() for info in topic.partitions if leader_of(info) is not None]
    starts = _offsets(connection, admin, led, EARLIEST)
    ends = _offsets(connection, admin, led, LATEST)
    stable = _offsets(connection, admin, led, LATEST, IsolationLevel.READ_COMMITTED)
    settings = _settings(connection, admin, list(found))
    sizes, no_sizes_because = _sizes(connection, list(found))
    return {
        name: TopicDescription(
            name=name,
            topic_id=str(topic.topic_id),
            settings=settings[name],
            partitions=tuple(
                partition_of(
                    info,
                    starts.get((name, info.id)),
                    ends.get((name, info.id)),
                    stable.get((name, info.id)),
                    sizes.get(name, {}).get(info.id, {}),
                )
                for info in sorted(topic.partitions, key=lambda each: each.id)
            ),
            no_sizes_because=no_sizes_because,
        )
        for name, topic in found.items()
    }


def _found(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, Any]:
    """The topics that can be described; one of our errors when none can, for another reason than that it is gone."""
    found, failed = {}, None
    for name, future in described_topics(connection, admin, names).items():
        try:
            found[name] = future.result()
        except KafkaException as failure:
            if failure.args[0].code() not in NOT_THERE:
                failed = translated(failure, f"topic {name!r}")
    if failed is not None and not found:
        # Nobody answered: that is no cluster without topics.
        raise failed
    return dict(sorted(found.items()))


def _offsets(
    connection: Connection,
    admin: AdminClient,
    partitions: Iterable[tuple[str, int]],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> _Offsets:
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    if not asked:
        return {}
    answers = admin.list_offsets(asked, isolation_level=isolation, request_timeout=connection.patience_s)
    found = {}
    for each, future in answers.items():
        try:
            offset = future.result().offset
        except KafkaException:
            continue
        # Less than 0 while the partition goes from one leader to the next.
        if offset >= 0:
            found[each.topic, each.partition] = offset
    return found


def _settings(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, dict[str, SettingNow]]:
    if not names:
        return {}
    found: dict[str, dict[str, SettingNow]] = {}
    for name, future in described_settings(admin, names, patience_s=connection.patience_s).items():
        try:
            found[name] = settings_of(future.result())
        except KafkaException:
            found[name] = {}
    return found


def _sizes(connection: Connection, names: list[str]) -> tuple[Mapping[str, Sizes], str | None]:
    try:
        return (all_sizes_on_disk(connection, names) if names else {}), None
    except LastwordError as refusal:
        return {}, str(refusal)
    except Exception as failure:
        # kafka-python, a client of its own, has trouble of its own: all but the sizes was answered.
        _log.debug("asking for sizes on disk failed", exc_info=True)
        return {}, f"sizes on disk are not known: asking for them failed with {type(failure).__name__}"
