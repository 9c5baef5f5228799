"""Watching a replica: from now, from a position, and when that is not possible."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.core.errors import (
    BadInput,
    FellBehind,
    HistoryLost,
)
from lastword.kafka.client.connection import Connection
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.topics.topic_changes import create_topic
from support.generated_logs import Act, Put, write_log
from support.replicas import (
    QUICK,
    wait_until_caught_up,
    write_rows,
)


def test_watching_from_now_gives_changes_in_order_and_ends_with_the_replica(users: Table, tmp_path: Path) -> None:
    users.put("before", 1)
    with users.replica(tmp_path) as replica:
        watch = replica.watch()
        for value in range(5):
            users.put("a", value)
        ack = users.delete("a")
        assert [next(watch).value for _ in range(5)] == [0, 1, 2, 3, 4]
        last = next(watch)
        assert (last.key, last.deleted, last.swept, last.offset) == ("a", True, False, ack.offset)
        assert watch.position[ack.partition] == ack.offset + 1
    assert list(watch) == []


def test_watching_from_a_position_gives_what_came_since_without_loss_or_doubles(users: Table, tmp_path: Path) -> None:
    users.put("a", 0)
    with users.replica(tmp_path) as replica:
        begin = replica.position
        for value in range(1, 50):
            users.put(f"key-{value % 7}", value)
        watch = replica.watch(begin)
        for value in range(50, 100):
            users.put(f"key-{value % 7}", value)
        values = [next(watch).value for _ in range(99)]
        assert sorted(values) == list(range(1, 100))
        for key in range(7):
            of_key = [value for value in values if value % 7 == key]
            assert of_key == sorted(of_key)
        assert watch.position == replica.position
        assert next(replica.watch(str(begin))).value in values


def test_watching_from_a_position_is_refused_when_a_tombstone_after_it_may_be_gone(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"delete.retention.ms": "100"})
    with Table(connection, topic_name) as users, users.replica(tmp_path) as replica:
        users.put("a", 1)
        # An aborted transaction leaves a hole in the offsets, as a tombstone does that was compacted away.
        write_log(connection, topic_name, [Act(puts=(Put(key=b"b", value=b"1", partition=0),), ending="abort")])
        wait_until_caught_up(connection, replica)
        time.sleep(0.2)
        with pytest.raises(HistoryLost, match="nothing is left at offset 1"):
            replica.watch("0:0")
        watch = replica.watch(replica.position)
        users.put("c", 2)
        assert next(watch).value == 2


def test_watching_over_a_hole_that_is_younger_than_tombstones_live_is_fine(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users, users.replica(tmp_path) as replica:
        begin = replica.position
        write_log(connection, topic_name, [Act(puts=(Put(key=b"b", value=b"1", partition=0),), ending="abort")])
        replica.wait_for(users.put("a", 1))
        assert next(replica.watch(begin)).value == 1


def test_a_new_replica_does_not_take_what_it_just_read_for_young(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users:
        users.put("a", 1)
        write_log(connection, topic_name, [Act(puts=(Put(key=b"b", value=b"1", partition=0),), ending="abort")])
        users.put("c", 2)
        with users.replica(tmp_path) as replica:
            wait_until_caught_up(connection, replica)
            # Whether it is seen before or after the first moment that the replica notes for itself.
            for _ in range(3):
                with pytest.raises(HistoryLost, match="nothing is left at offset 1"):
                    replica.watch("0:0")
                time.sleep(1)


def test_a_watcher_that_falls_behind_is_cut_off_and_the_table_goes_on(users: Table, tmp_path: Path) -> None:
    with users.replica(tmp_path, watch_capacity=10) as replica:
        slow = replica.watch()
        for value in range(12):
            # One by one: changes that come together find room together or not at all.
            replica.wait_for(users.put("a", value))
        with pytest.raises(FellBehind, match="more than 10 changes behind"):
            list(slow)
        assert replica["a"] == 11
        again = replica.watch(slow.position)
        assert [next(again).value, next(again).value] == [10, 11]


def test_what_a_watcher_missed_leads_to_what_the_table_shows_also_for_keys_in_two_partitions(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2)
    write_rows(
        connection, topic_name, [(0, "k", "1", 1000), (1, "k", None, 2000), (0, "s", "1", 2000), (1, "s", "0", 1000)]
    )
    with Table(connection, topic_name).replica(tmp_path) as replica:
        watched: dict[Any, Any] = {}
        watch = replica.watch("0:0,1:0")
        for _ in range(4):
            change = next(watch)
            watched[change.key] = change.value
        assert watched == dict(replica) == {"k": 1, "s": 1}


def test_a_tombstone_that_goes_while_a_slow_watcher_reads_is_not_passed_over(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={**QUICK, "delete.retention.ms": "3000"})
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("gone", 2)])
        with users.replica(tmp_path / "replica") as replica:
            begin = replica.position
            users.delete("gone")
            replica.wait_for(users.put("b", 1))
            watch = replica.watch(begin)
            compact_topic(connection, topic_name, home=tmp_path / "home")
            time.sleep(1)
            with pytest.raises(HistoryLost, match="a delete may be missing"):
                next(watch)
            # And again: what comes after the gap is not given as if there were none.
            with pytest.raises(HistoryLost, match="a delete may be missing"):
                next(watch)


def test_a_position_that_is_not_in_the_topic_is_refused(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_rows(connection, topic_name, [(0, "a", "1")])
    with Table(connection, topic_name).replica(tmp_path) as replica:
        for start in ("0:99", "7:3", "0:0,7:3"):
            with pytest.raises(BadInput, match=topic_name):
                replica.watch(start)
