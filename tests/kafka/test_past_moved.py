"""When the past has moved under a replica: topics made anew, truncated, shortened, compacted, with more partitions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lastword.core.errors import HistoryLost
from lastword.core.record import Record
from lastword.kafka.compaction import compact_topic
from lastword.kafka.connection import Connection
from lastword.kafka.local import LocalCluster
from lastword.kafka.murmur2 import partition_of
from lastword.kafka.reading import log_bounds, read_log
from lastword.kafka.topics import alter_topic, create_topic, delete_topic
from lastword.replica import ghosts
from lastword.replica.replica import Replica
from lastword.table import Table
from support.command_line import JARS
from support.compacted_logs import aborted
from support.replicas import log_now
from support.waiting import eventually

QUICK = {"delete.retention.ms": "500", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.01"}


def values(replica: Replica) -> dict[str, object]:
    return dict(replica)


def table(
    connection: Connection, topic: str, settings: Mapping[str, str] | None = None, *, partitions: int = 1
) -> Table:
    create_topic(connection, topic, partitions=partitions, settings=settings or {})
    return Table(connection, topic)


def compacted_away(connection: Connection, topic: str, home: Path) -> None:
    """Compacts until no tombstone is left in the log."""
    compact_topic(connection, topic, home=home)
    assert [record.key for record in log_now(connection, topic) if record.is_tombstone] == []


# Recreated


def test_a_topic_that_was_recreated_while_the_replica_was_away_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with table(connection, topic_name) as old:
        old.put_many([("a", 1), ("b", 2)])
        with old.replica(tmp_path):
            pass
    delete_topic(connection, topic_name)
    with table(connection, topic_name) as new:
        # As many records as before, so that only the topic's id tells.
        new.put_many([("c", 3), ("d", 4)])
        with new.replica(tmp_path) as replica:
            assert values(replica) == {"c": 3, "d": 4}
            assert len(replica) == 2


def test_a_topic_that_is_recreated_under_a_running_replica_is_built_again_and_watchers_are_told(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with table(connection, topic_name) as users, users.replica(tmp_path) as replica:
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
        assert values(replica) == {"b": 2}
        with pytest.raises(HistoryLost, match=r"was recreated .* start over from its rows"):
            list(watch)


# Truncated


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(name="fragile", folder=tmp_path / "fragile", jars=JARS, owned=True) as cluster:
        cluster.start(port=0)
        yield cluster


def connected(cluster: LocalCluster) -> Connection:
    assert cluster.spec is not None
    return Connection(bootstrap_servers=cluster.spec.bootstrap_servers)


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
            assert values(replica) == {"a": 1, "b": 2, "c": 3, "d": 4}
    place = partition_folder(cluster, users.topic)
    cluster.stop()
    shutil.rmtree(place)
    shutil.copytree(saved, place)
    cluster.start()
    assert log_bounds(connection, users.topic)[1] == {0: 2}


def test_a_truncated_log_is_read_again(fragile: LocalCluster, topic_name: str, tmp_path: Path) -> None:
    connection = connected(fragile)
    with table(connection, topic_name) as users:
        truncated_after(fragile, connection, users, tmp_path / "replica", tmp_path / "saved")
    with Table(connection, topic_name).replica(tmp_path / "replica") as replica:
        assert values(replica) == {"a": 1, "b": 2}


@pytest.mark.parametrize("others", ["ef", "efgh"], ids=["to the position", "past the position"])
def test_a_truncated_log_that_has_grown_again_is_told_by_its_leader_epoch(
    fragile: LocalCluster, topic_name: str, tmp_path: Path, others: str
) -> None:
    connection = connected(fragile)
    with table(connection, topic_name) as users:
        truncated_after(fragile, connection, users, tmp_path / "replica", tmp_path / "saved")
    with Table(connection, topic_name) as users:
        # Other records at the same offsets: those alone tell nothing.
        users.put_many([(key, 5) for key in others])
        assert log_bounds(connection, topic_name)[1] == {0: 2 + len(others)}
        with users.replica(tmp_path / "replica") as replica:
            assert values(replica) == {"a": 1, "b": 2, **dict.fromkeys(others, 5)}


def test_a_position_after_records_that_are_not_shown_is_not_taken_for_a_truncation(
    fragile: LocalCluster, topic_name: str, tmp_path: Path
) -> None:
    """An aborted transaction under a later leader, and nothing visible after it."""
    connection = connected(fragile)
    with table(connection, topic_name) as users:
        users.put_many([("a", 1), ("b", 2)])
    fragile.stop()
    fragile.start()
    with aborted(connection, topic_name, records=2):
        pass
    folder = tmp_path / "replica"
    with Table(connection, topic_name).replica(folder) as replica:
        assert replica.position == {0: 5}
    fragile.stop()
    fragile.start()
    with Table(connection, topic_name).replica(folder) as replica:
        time.sleep(1)
        assert (replica.state.name, values(replica)) == ("ready", {"a": 1, "b": 2})
    assert [path.name for path in folder.glob("store-*")] == ["store-1"]


# The log's start passed the position


def shortened(connection: Connection, topic: str) -> None:
    """Deletes the records so far, as retention does."""
    from confluent_kafka import OFFSET_END, TopicPartition

    admin = connection.admin()
    for future in admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values():
        future.result()


def test_where_records_were_deleted_that_the_replica_never_saw_it_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with table(connection, topic_name, {"cleanup.policy": "compact,delete"}) as users:
        users.put("a", 1)
        with users.replica(tmp_path):
            pass
        users.put("b", 2)
        shortened(connection, topic_name)
        users.put("c", 3)
        with users.replica(tmp_path) as replica:
            assert values(replica) == {"c": 3}


def test_or_it_refuses_as_told_and_says_what_to_do(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    with table(connection, topic_name, {"cleanup.policy": "compact,delete"}) as users:
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
            assert values(replica) == {"a": 1}


# Ghosts


def test_a_key_whose_tombstone_was_compacted_away_while_the_replica_was_away_is_swept(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = threading.Event()

    def once_watched(*args: object, **options: object) -> Iterator[object]:
        watched.wait(30)
        yield from ghosts.sweep(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("lastword.replica.session.sweep", once_watched)
    with table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("ghost", 2), ("b", 3)])
        with users.replica(tmp_path / "replica") as replica:
            assert len(replica) == 3
            position = replica.position
        users.delete("ghost")
        compacted_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        with users.replica(tmp_path / "replica", wait=False) as replica:
            watch = replica.watch()
            watched.set()
            replica.wait_until_ready()
            assert values(replica) == {"a": 1, "b": 3}
            assert (len(replica), replica.state.deletes) == (2, "certain")
            change = next(watch)
            assert (change.key, change.deleted, change.swept) == ("ghost", True, True)
            with pytest.raises(HistoryLost, match="a delete may be missing"):
                replica.watch(position)


def test_without_the_sweep_the_ghost_would_be_shown(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above."""
    monkeypatch.setattr("lastword.replica.session.sweep", lambda *_, **__: iter(()))
    with table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        users.delete("ghost")
        compacted_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        with users.replica(tmp_path / "replica") as replica:
            assert values(replica) == {"a": 1, "ghost": 2}


def test_a_replica_that_stalls_for_longer_than_tombstones_live_sweeps_when_it_goes_on(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        stalled = subprocess.Popen(
            [sys.executable, "-c", _FOLLOW, connection.bootstrap_servers, topic_name, str(tmp_path / "replica")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert stalled.stdout is not None
            assert stalled.stdout.readline() == "['a', 'ghost']\n"
            stalled.send_signal(signal.SIGSTOP)
            # Until the question that it has asked the broker is answered, with nothing.
            time.sleep(0.5)
            users.delete("ghost")
            compacted_away(connection, topic_name, tmp_path / "home")
            stalled.send_signal(signal.SIGCONT)
            assert stalled.stdout.readline() == "ghost deleted=True swept=True\n"
            assert stalled.stdout.readline() == "['a']\n"
        finally:
            stalled.kill()
            stalled.communicate()


_FOLLOW = """\
import sys, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster, cluster.table(topic).replica(folder) as replica:
    watch = replica.watch()
    print(list(replica), flush=True)
    for change in watch:
        print(f"{change.key} deleted={change.deleted} swept={change.swept}", flush=True)
        print(list(replica), flush=True)
"""


def test_a_replica_that_was_away_for_long_and_missed_nothing_reads_nothing_again(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[int] = []

    def note(_connection: object, _store: object, _folder: object, partition: int, **_: object) -> Iterator[object]:
        swept.append(partition)
        return iter(())

    monkeypatch.setattr("lastword.replica.session.sweep", note)
    with table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("b", 2)])
        with users.replica(tmp_path):
            pass
        time.sleep(0.7)
        with users.replica(tmp_path):
            pass
        # Every offset is there: no tombstone can have gone.
        users.put("c", 3)
        users.delete("a")
        with users.replica(tmp_path) as replica:
            assert values(replica) == {"b": 2, "c": 3}
        assert swept == []
        # Here one is missing.
        with aborted(connection, topic_name, records=1):
            pass
        time.sleep(0.7)
        with users.replica(tmp_path):
            assert swept == [0]


def test_a_pass_that_takes_longer_than_tombstones_live_is_repeated_and_then_deletes_are_uncertain(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []

    def slow(*args: object, **options: object) -> Iterator[list[Record]]:
        if "start" not in options:
            passes.append(topic_name)
        for batch in read_log(*args, **options):  # type: ignore[arg-type]
            time.sleep(0.6)
            yield batch

    with table(connection, topic_name, QUICK) as users:
        users.put("a", 1)
        with users.replica(tmp_path):
            pass
        with aborted(connection, topic_name, records=1):
            pass
        users.put("b", 2)
        time.sleep(0.7)
        monkeypatch.setattr("lastword.replica.ghosts.read_log", slow)
        with users.replica(tmp_path) as replica:
            assert len(passes) == 3
            assert (replica.state.name, replica.state.deletes) == ("ready", "uncertain")
            assert "deletes: uncertain" in str(replica.state)
            assert values(replica) == {"a": 1, "b": 2}
        monkeypatch.undo()
        # The next start is a new chance.
        with users.replica(tmp_path) as replica:
            assert replica.state.deletes == "certain"


def test_a_sweep_of_many_keys_notes_them_on_disk(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ghosts, "_IN_MEMORY", 10)
    monkeypatch.setattr(ghosts, "_AT_ONCE", 3)
    with table(connection, topic_name, QUICK) as users:
        users.put_many([(f"key-{n:03}", n) for n in range(100)])
        with users.replica(tmp_path / "replica"):
            pass
        for number in range(0, 40, 2):
            users.delete(f"key-{number:03}")
        users.put("key-000", "again")
        compacted_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        with users.replica(tmp_path / "replica") as replica:
            gone = {f"key-{n:03}" for n in range(2, 40, 2)}
            assert set(replica) == {f"key-{n:03}" for n in range(100)} - gone
            assert len(replica) == 81
        assert list((tmp_path / "replica").glob("scratch-*")) == []


# More partitions


def test_partitions_that_were_added_are_followed_and_split_keys_are_counted(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with table(connection, topic_name, partitions=1) as users:
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
            eventually(lambda: running.position == returned.position, within_s=40)
            for replica in (running, returned):
                assert values(replica) == {f"key-{n}": 2 for n in range(20)}
                assert (len(replica), sorted(replica.position)) == (20, [0, 1, 2, 3])
                assert 0 < replica.split_keys < 20


# The cluster goes away and comes back


def test_a_broker_that_is_away_is_a_state_and_the_replica_goes_on_when_it_is_back(
    fragile: LocalCluster, topic_name: str, tmp_path: Path
) -> None:
    connection = connected(fragile)
    with table(connection, topic_name) as users, users.replica(tmp_path / "replica") as replica:
        replica.wait_for(users.put("a", 1))
        watch = replica.watch()
        fragile.stop()
        eventually(lambda: replica.state.name == "connecting")
        assert "no Kafka answers" in str(replica.state.why)
        assert (values(replica), replica.get("a")) == ({"a": 1}, 1)
        fragile.start()
        with Table(connection, topic_name) as again:
            again.put("a", 2)
        assert next(watch).value == 2
        eventually(lambda: replica.state.name == "ready")


def test_a_leader_that_dies_is_followed_by_the_next_one(tmp_path: Path) -> None:
    with LocalCluster(name="three", folder=tmp_path / "three", jars=JARS, owned=True) as cluster:
        cluster.start(port=0, brokers=3)
        connection = connected(cluster)
        create_topic(connection, "users", partitions=3, replication=3, settings={"min.insync.replicas": "2"})
        with Table(connection, "users") as users, users.replica(tmp_path / "replica") as replica:
            users.put_many([(f"key-{n}", 1) for n in range(50)])
            eventually(lambda: len(replica) == 50)
            pid = cluster.status()[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            with Table(connection, "users") as again:
                again.put_many([(f"key-{n}", 2) for n in range(50)])
            eventually(lambda: set(replica.values()) == {2}, within_s=60)
            cluster.start()
            eventually(lambda: replica.state.name == "ready")
            assert (len(replica), replica.lag) == (50, 0)
