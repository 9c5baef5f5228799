"""A whole cluster right now, by few requests: its brokers, and every topic with offsets, settings and sizes.

Only missing metadata are an error. Any other missing answer (a right is missing, a topic was deleted meanwhile, a
partition changes its leader) is None in the result: trouble with one topic must not hide all the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
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


# Asks what a cluster is like now, with a client that is kept for the next question.
Describe = Callable[[Connection, AdminClient], ClusterDescription]


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
    described = _described(connection, admin, names)
    led = [
        (name, info.id) for name, topic in described.items() for info in topic.partitions if leader_of(info) is not None
    ]
    starts = _offsets(connection, admin, led, EARLIEST)
    ends = _offsets(connection, admin, led, LATEST)
    stable = _offsets(connection, admin, led, LATEST, IsolationLevel.READ_COMMITTED)
    settings = _settings(connection, admin, list(described))
    sizes, no_sizes_because = _sizes(connection, list(described))
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
        for name, topic in described.items()
    }


def _described(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, Any]:
    """The topics that can be described; an error if none can, unless all were deleted or are hidden."""
    topics, failed = {}, None
    for name, future in described_topics(connection, admin, names).items():
        try:
            topics[name] = future.result()
        except KafkaException as failure:
            if failure.args[0].code() not in NOT_THERE:
                failed = translated(failure, f"topic {name!r}")
    if failed is not None and not topics:
        # Nobody answered: that is not a cluster without topics.
        raise failed
    return dict(sorted(topics.items()))


def _offsets(
    connection: Connection,
    admin: AdminClient,
    partitions: Iterable[tuple[str, int]],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> _Offsets:
    requests = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    if not requests:
        return {}
    answers = admin.list_offsets(requests, isolation_level=isolation, request_timeout=connection.patience_s)
    offsets = {}
    for each, future in answers.items():
        try:
            offset = future.result().offset
        except KafkaException:
            continue
        # Less than 0 while the partition changes its leader.
        if offset >= 0:
            offsets[each.topic, each.partition] = offset
    return offsets


def _settings(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, dict[str, SettingNow]]:
    if not names:
        return {}
    settings: dict[str, dict[str, SettingNow]] = {}
    for name, future in described_settings(admin, names, patience_s=connection.patience_s).items():
        try:
            settings[name] = settings_of(future.result())
        except KafkaException:
            settings[name] = {}
    return settings


def _sizes(connection: Connection, names: list[str]) -> tuple[Mapping[str, Sizes], str | None]:
    try:
        return (all_sizes_on_disk(connection, names) if names else {}), None
    except LastwordError as refusal:
        return {}, str(refusal)
    except Exception as failure:
        # kafka-python is another client, and may fail where this one does not: only the sizes are unknown.
        _log.debug("asking for sizes on disk failed", exc_info=True)
        return {}, f"sizes on disk are not known: asking for them failed with {type(failure).__name__}"
