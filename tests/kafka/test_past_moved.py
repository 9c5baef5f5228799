"""When the past has moved under a replica: a topic made anew, truncated, shortened, widened, or during a build."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition

from lastword.api.table import Table
from lastword.core.errors import (
    HistoryLost,
)
from lastword.core.key_partition import partition_of
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.replica.building.rebuild import build
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSteps
from support.compacted_logs import aborted_transaction
from support.replicas import (
    connection_to,
    disagreements,
    killed_at,
    log_now,
    make_table,
    recreate,
    replica_of,
    write_rows,
)
from support.waiting import eventually


def partition_folder(cluster: LocalCluster, topic: str) -> Path:
    (found,) = cluster.folder.rglob(f"{topic}-0")
    return found


def truncated_after(cluster: LocalCluster, connection: Connection, users: Table, folder: Path, saved: Path) -> None:
    """The replica in `folder` has read four records, and the log has only the first two of them."""
    users.put_many([("a", 1), ("b", 2)])
    with users.replica(folder):
        pass
    cluster.stop()
    shutil.copytree(partition_folder(cluster, users.topic), saved)
    cluster.start()
    with Table(connection, users.topic) as again:
        again.put_many([("c", 3), ("d", 4)])
        with again.replica(folder) as replica:
            assert dict(replica) == {"a": 1, "b": 2, "c": 3, "d": 4}
    place = partition_folder(cluster, users.topic)
    cluster.stop()
    shutil.rmtree(place)
    shutil.copytree(saved, place)
    cluster.start()
    assert log_bounds(connection, users.topic)[1] == {0: 2}


def shortened(connection: Connection, topic: str) -> None:
    """Deletes the records so far, as retention does."""
    admin = connection.admin()
    for future in admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values():
        future.result()


def test_a_topic_that_was_recreated_while_the_replica_was_away_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with make_table(connection, topic_name) as old:
        old.put_many([("a", 1), ("b", 2)])
        with old.replica(tmp_path):
            pass
    delete_topic(connection, topic_name)
    with make_table(connection, topic_name) as new:
        # As many records as before, so that only the topic's id tells.
        new.put_many([("c", 3), ("d", 4)])
        with new.replica(tmp_path) as replica:
            assert dict(replica) == {"c": 3, "d": 4}
            assert len(replica) == 2


def test_a_topic_that_is_recreated_under_a_running_replica_is_built_again_and_watchers_are_told(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with make_table(connection, topic_name) as users, users.replica(tmp_path) as replica:
        users.put("a", 1)
        eventually(lambda: "a" in replica)
        watch = replica.watch()
        delete_topic(connection, topic_name)
        eventually(lambda: replica.state.name == "connecting")
        assert "no topic" in str(replica.state.why)
        create_topic(connection, topic_name, partitions=1)
        with Table(connection, topic_name) as again:
            again.put("b", 2)
        eventually(lambda: replica.state.name == "ready" and replica.get("b") == 2)
        assert dict(replica) == {"b": 2}
        with pytest.raises(HistoryLost, match=r"was recreated .* start over from its rows"):
            list(watch)


def test_a_truncated_log_is_read_again(fragile: LocalCluster, topic_name: str, tmp_path: Path) -> None:
    connection = connection_to(fragile)
    with make_table(connection, topic_name) as users:
        truncated_after(fragile, connection, users, tmp_path / "replica", tmp_path / "saved")
    with Table(connection, topic_name).replica(tmp_path / "replica") as replica:
        assert dict(replica) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "others",
    [pytest.param("ef", id="to the position", marks=pytest.mark.long), pytest.param("efgh", id="past the position")],
)
def test_a_truncated_log_that_has_grown_again_is_told_by_its_leader_epoch(
    fragile: LocalCluster, topic_name: str, tmp_path: Path, others: str
) -> None:
    connection = connection_to(fragile)
    with make_table(connection, topic_name) as users:
        truncated_after(fragile, connection, users, tmp_path / "replica", tmp_path / "saved")
    with Table(connection, topic_name) as users:
        # Other records at the same offsets: those alone tell nothing.
        users.put_many([(key, 5) for key in others])
        assert log_bounds(connection, topic_name)[1] == {0: 2 + len(others)}
        with users.replica(tmp_path / "replica") as replica:
            assert dict(replica) == {"a": 1, "b": 2, **dict.fromkeys(others, 5)}


def test_a_position_after_records_that_are_not_shown_is_not_taken_for_a_truncation(
    fragile: LocalCluster, topic_name: str, tmp_path: Path
) -> None:
    """An aborted transaction under a later leader, and nothing visible after it."""
    connection = connection_to(fragile)
    with make_table(connection, topic_name) as users:
        users.put_many([("a", 1), ("b", 2)])
    fragile.stop()
    fragile.start()
    with aborted_transaction(connection, topic_name, records=2):
        pass
    folder = tmp_path / "replica"
    with Table(connection, topic_name).replica(folder) as replica:
        assert replica.position == {0: 5}
    fragile.stop()
    fragile.start()
    with Table(connection, topic_name).replica(folder) as replica:
        time.sleep(1)
        assert (replica.state.name, dict(replica)) == ("ready", {"a": 1, "b": 2})
    assert [path.name for path in folder.glob("store-*")] == ["store-1"]


def test_where_records_were_deleted_that_the_replica_never_saw_it_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with make_table(connection, topic_name, {"cleanup.policy": "compact,delete"}) as users:
        users.put("a", 1)
        with users.replica(tmp_path):
            pass
        users.put("b", 2)
        shortened(connection, topic_name)
        users.put("c", 3)
        with users.replica(tmp_path) as replica:
            assert dict(replica) == {"c": 3}


def test_or_it_refuses_as_told_and_says_what_to_do(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    with make_table(connection, topic_name, {"cleanup.policy": "compact,delete"}) as users:
        users.put("a", 1)
        with users.replica(tmp_path):
            pass
        users.put("b", 2)
        shortened(connection, topic_name)
        with pytest.raises(HistoryLost, match=r"now starts at 2, the replica is at 1.*on_lost_records='rebuild'"):
            users.replica(tmp_path, on_lost_records="fail")
        with users.replica(tmp_path, on_lost_records="fail", wait=False) as replica:
            eventually(lambda: replica.state.name == "failed")
            # The rows are right for their position, and go on being shown.
            assert dict(replica) == {"a": 1}


def test_partitions_that_were_added_are_followed_and_split_keys_are_counted(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with make_table(connection, topic_name, partitions=1) as users:
        users.put_many([(f"key-{n}", 1) for n in range(20)])
        with users.replica(tmp_path / "away"):
            pass
    with Table(connection, topic_name).replica(tmp_path / "running", check_every_s=60) as running:
        alter_topic(connection, topic_name, settings={}, partitions=4, move_keys=True)
        with Table(connection, topic_name) as users:
            users.put_many([(f"key-{n}", 2) for n in range(20)])
            # Nobody waits for the next check to see its own write, even in a partition that is new.
            new = next(key for key in map("new-{}".format, range(100)) if partition_of(key.encode(), 4) == 3)
            running.wait_for(users.put(new, 3))
            users.delete(new)
        with Table(connection, topic_name).replica(tmp_path / "away") as returned:
            eventually(lambda: running.position == returned.position)
            for replica in (running, returned):
                assert dict(replica) == {f"key-{n}": 2 for n in range(20)}
                assert (len(replica), sorted(replica.position)) == (20, [0, 1, 2, 3])
                assert 0 < replica.split_keys < 20


def built(
    connection: Connection,
    topic: str,
    folder: Path,
    *,
    key: str = "string",
    build: Callable[..., bool] = build,
) -> Replica:
    """A replica for which every topic is large enough for workers."""
    steps = ReplicaSteps(build=build, build_from_offsets=1)
    return replica_of(connection, topic, folder, key=key, steps=steps)


def test_a_topic_that_is_recreated_during_a_build_is_never_shown_as_a_mix(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_rows(connection, topic_name, [(0, f"old-{n}", "1") for n in range(5)])
    done: list[int] = []

    def then_anew(*args: Any, **options: Any) -> bool:
        is_built = build(*args, **options)
        if not done:
            done.append(1)
            recreate(connection, topic_name, [(0, f"new-{n}", "1") for n in range(8)])
        return is_built

    with built(connection, topic_name, tmp_path, build=then_anew) as replica:
        assert list(replica) == [f"new-{n}" for n in range(8)]
    assert done == [1]


def test_records_that_are_deleted_while_it_is_built_make_it_begin_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "compact,delete"})
    write_rows(connection, topic_name, [(0, f"key-{n}", "1") for n in range(20)])

    def late(*args: Any, **options: Any) -> bool:
        admin = connection.admin()
        for future in admin.delete_records([TopicPartition(topic_name, 0, 15)]).values():
            future.result()
        return build(*args, **options)

    with built(connection, topic_name, tmp_path, build=late) as replica:
        assert len(replica) == 5


@pytest.mark.open
def test_rows_that_are_known_to_be_wrong_are_not_shown_after_a_kill_either(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users:
        users.put("old", 1)
        with users.replica(tmp_path):
            pass
    recreate(connection, topic_name, [(0, "new", "1")])
    killed_at("OwnedStore.build", connection, topic_name, tmp_path)
    nowhere = Connection(bootstrap_servers="127.0.0.1:1")
    with Table(nowhere, topic_name).replica(tmp_path, wait=False) as replica:
        assert not replica.position
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert list(replica) == ["new"]


def test_odd_keys_and_values_go_through_the_workers(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=2)
    rows = [(0, b"", "1"), (0, b"x", b""), (1, b"\xff" * 70_000, b"9" * 900_000), (0, b"d", "1"), (0, b"d", None)]
    write_rows(connection, topic_name, rows)
    with built(connection, topic_name, tmp_path, key="bytes") as replica:
        assert disagreements(replica, log_now(connection, topic_name)) == []
