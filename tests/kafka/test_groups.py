"""A position committed in the name of a group is what tools for groups show."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from lastword.api.table import Table
from lastword.core.errors import BadInput, ClusterUnreachable, NotFound
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from support.waiting import eventually


def test_what_was_committed_last_is_where_the_group_stands(connection: Connection, users: Table) -> None:
    group = GroupPosition(connection, f"group-of-{users.topic}")
    group.commit({users.topic: Position({0: 1, 1: 2})})
    group.commit({users.topic: Position({1: 5})})
    group.commit({})
    consumer = connection.consumer(group_id=f"group-of-{users.topic}")
    places = consumer.committed([TopicPartition(users.topic, partition) for partition in range(3)], timeout=10)
    consumer.close()
    assert [place.offset for place in places[:2]] == [1, 5]
    assert places[2].offset < 0


def test_a_group_with_members_is_refused(connection: Connection, users: Table) -> None:
    member = connection.consumer(group_id=f"group-of-{users.topic}", auto_offset_reset="latest")
    member.subscribe([users.topic])
    try:

        def has_joined() -> bool:
            member.poll(0.1)
            return bool(member.assignment())

        eventually(has_joined)
        with pytest.raises(BadInput, match="has members that read and commit: give another name"):
            GroupPosition(connection, f"group-of-{users.topic}").commit({users.topic: Position({0: 1})})
    finally:
        member.close()


def test_a_topic_or_partition_that_is_not_there_is_named(connection: Connection, users: Table) -> None:
    group = GroupPosition(connection, f"group-of-{users.topic}")
    with pytest.raises(NotFound, match=rf"{users.topic}\[9\]"):
        group.commit({users.topic: Position({9: 1})})


def test_a_cluster_that_is_away_is_waited_for_as_long_as_the_connection_says() -> None:
    group = GroupPosition(Connection(bootstrap_servers="127.0.0.1:1", patience_s=1), "group")
    with pytest.raises(ClusterUnreachable):
        group.commit({"users": Position({0: 1})})


def test_a_group_has_a_name(connection: Connection) -> None:
    with pytest.raises(BadInput, match="is empty"):
        GroupPosition(connection, "")
