"""The present state of consumer groups: how many members each has, and how far it has committed a topic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lastword.core.position import Position
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import answer


@dataclass(frozen=True, kw_only=True)
class GroupNow:
    """A group beside one topic."""

    members: int
    has_topic: bool  # a member reads a partition of the topic
    committed: Position  # empty where nothing is committed


def groups_now(
    connection: Connection,
    admin: AdminClient,
    topic: str,
    partitions: Collection[int],
    choose: Callable[[Iterable[str]], Collection[str]],
) -> dict[str, GroupNow]:
    """The groups that `choose` picks from all names, by name; LastwordError when the cluster does not list them.

    Without partitions there is no topic, and so no group.
    """
    patience_s = connection.patience_s
    listed = answer(admin.list_consumer_groups(request_timeout=patience_s), "listing the consumer groups")
    if listed.errors:
        raise translated(listed.errors[0], "listing the consumer groups")
    names = sorted(choose(each.group_id for each in listed.valid or ())) if partitions else []
    if not names:
        return {}
    described = admin.describe_consumer_groups(names, request_timeout=patience_s)
    committed = {
        name: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(name, [TopicPartition(topic, p) for p in sorted(partitions)])],
            request_timeout=patience_s,
        )[name]
        for name in names
    }
    groups = {}
    for name in names:
        try:
            groups[name] = _group(topic, described[name].result(), committed[name].result())
        except KafkaException:
            continue  # deleted since it was listed, or hidden from this user
    return groups


def _group(topic: str, description: Any, offsets: Any) -> GroupNow:
    read = {place.topic for member in description.members for place in member.assignment.topic_partitions}
    committed = {place.partition: place.offset for place in offsets.topic_partitions if place.offset >= 0}
    return GroupNow(members=len(description.members), has_topic=topic in read, committed=Position(committed))
