"""What happens to a replica in the middle of something else: each of these was wrong once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from lastword.core.errors import BadInput, ClusterUnreachable, HistoryLost, NotFound
from lastword.core.position import Position
from lastword.kafka.compaction import compact_topic
from lastword.kafka.connection import Connection
from lastword.kafka.topics import alter_topic, create_topic, delete_topic
from lastword.replica import following, ghosts
from lastword.replica.folder import ReplicaFolder
from lastword.replica.replica import Replica
from lastword.replica.store import Store
from lastword.table import Table
from support.compacted_logs import aborted
from support.logs import Put, leave_open
from support.waiting import eventually

QUICK = {"delete.retention.ms": "500", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.01"}


def write(connection: Connection, topic: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """(partition, key, value) one after the other, with a timestamp where there is one."""
    producer = connection.producer(linger_ms=0)
    for partition, key, value, *timestamp in rows:
        given: dict[str, Any] = {"timestamp": timestamp[0]} if timestamp else {}
        producer.produce(topic, key=key, value=value, partition=partition, **given)
        assert producer.flush(10) == 0


def ghosts_made(connection: Connection, topic: str, home: Path, *keys: str) -> None:
    """Deletes the keys and lets their tombstones be compacted away."""
    with Table(connection, topic) as users:
        for key in keys:
            users.delete(key)
    compact_topic(connection, topic, home=home)
    time.sleep(0.7)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Sweeps begin when it is set."""
    opened = threading.Event()

    def gated(*args: Any, **options: Any) -> Iterator[object]:
        opened.wait(30)
        yield from ghosts.sweep(*args, **options)

    monkeypatch.setattr("lastword.replica.session.sweep", gated)
    return opened


# Sweeps


def test_a_watcher_that_comes_back_to_where_ghosts_were_swept_is_told_to_start_over(
    connection: Connection, topic_name: str, tmp_path: Path, gate: threading.Event
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        ghosts_made(connection, topic_name, tmp_path / "home", "ghost")
        with users.replica(tmp_path / "replica", wait=False) as replica:
            eventually(lambda: "sweeping" in str(replica.state.why))
            # Ghosts are shown until they are swept: not a moment to call it ready.
            assert (replica.state.name, "ghost" in replica) == ("catching-up", True)
            with replica.watch() as watch:
                seen_upto = watch.position
            gate.set()
            replica.wait_until_ready()
            with pytest.raises(HistoryLost, match=r"deletes were found .* start over from the rows"):
                replica.watch(seen_upto)
            ack = users.put("b", 3)
            replica.wait_for(ack)
            assert replica.watch(ack.position).position == ack.position


def test_a_row_that_shows_up_from_behind_a_ghost_is_a_put_and_not_swept(
    connection: Connection, topic_name: str, tmp_path: Path, gate: threading.Event
) -> None:
    create_topic(connection, topic_name, partitions=2, settings=QUICK)
    write(connection, topic_name, [(0, "k", "1", 1000), (1, "k", "2", 2000), (1, "x", "1", 2000)])
    with Table(connection, topic_name) as users:
        with users.replica(tmp_path / "replica") as replica:
            assert (replica["k"], replica.split_keys) == (2, 1)
        write(connection, topic_name, [(1, "k", None)])
        compact_topic(connection, topic_name, home=tmp_path / "home")
        time.sleep(0.7)
        with users.replica(tmp_path / "replica", wait=False) as replica:
            eventually(lambda: "sweeping" in str(replica.state.why))
            watch = replica.watch()
            gate.set()
            change = next(watch)
            assert (change.value, change.deleted, change.swept) == (1, False, False)


def test_a_sweep_leaves_a_row_alone_whose_place_a_later_record_has_taken(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    """What was compacted away because of a record after the position is no ghost."""
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        users.put("a", 3)
    ghosts_made(connection, topic_name, tmp_path / "home", "ghost")
    folder = ReplicaFolder(tmp_path / "replica")
    assert folder.current is not None
    store = Store(folder.current, readable=lambda _: True)
    try:
        (applied,) = ghosts.sweep(connection, store, folder, 0, retention_ms=60_000, stopping=threading.Event())
        assert [record.key for record in applied.records] == [b"ghost"]
        assert [record.key for record in store.scan()] == [b"a"]
    finally:
        store.close()
        folder.close()


@pytest.mark.parametrize(("known", "present"), [("500", "86400000"), ("86400000", "500")])
def test_the_shorter_of_the_retention_that_was_and_the_one_that_is_decides(
    connection: Connection, topic_name: str, tmp_path: Path, known: str, present: str
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={**QUICK, "delete.retention.ms": known})
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        alter_topic(connection, topic_name, settings={"delete.retention.ms": "500"})
        ghosts_made(connection, topic_name, tmp_path / "home", "ghost")
        alter_topic(connection, topic_name, settings={"delete.retention.ms": present})
        with users.replica(tmp_path / "replica") as replica:
            assert list(replica) == ["a"]


@pytest.mark.parametrize("caught_up_at", [0, 1 << 60], ids=["killed before the sweep", "a clock that was set back"])
def test_a_store_that_was_left_with_holes_is_swept_at_its_next_start(
    connection: Connection, topic_name: str, tmp_path: Path, caught_up_at: int
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        ghosts_made(connection, topic_name, tmp_path / "home", "ghost")
        # As a kill between the last commit and the sweep leaves it: at the end, with holes behind it.
        end = log_end(connection, topic_name)
        folder = ReplicaFolder(tmp_path / "replica")
        assert folder.current is not None
        store = Store(folder.current, readable=lambda _: True)
        store.apply([], {0: store.places[0]._replace(position=end, holes=True, caught_up_at=caught_up_at)})
        store.close()
        folder.close()
        with users.replica(tmp_path / "replica") as replica:
            assert list(replica) == ["a"]


def log_end(connection: Connection, topic: str) -> int:
    from lastword.kafka.reading import log_bounds

    return log_bounds(connection, topic)[1][0]


def test_where_tombstones_live_for_no_time_a_partition_is_not_read_again_for_every_transaction(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"delete.retention.ms": "0"})
    sweeps: list[int] = []

    def noted(*args: Any, **options: Any) -> Iterator[object]:
        sweeps.append(1)
        yield from ghosts.sweep(*args, **options)

    monkeypatch.setattr("lastword.replica.session.sweep", noted)
    with Table(connection, topic_name).replica(tmp_path, check_every_s=2):
        for _ in range(8):
            with aborted(connection, topic_name, records=1):
                pass
        assert len(sweeps) <= 3


def test_a_topic_that_is_recreated_in_the_middle_of_a_sweep_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([(f"key-{n}", 1) for n in range(5)])
        with users.replica(tmp_path):
            pass
        with aborted(connection, topic_name, records=1):
            pass
        time.sleep(0.7)
        read_log, reads = ghosts.__dict__["read_log"], []

        def then_anew(*args: Any, **options: Any) -> Iterator[object]:
            yield from read_log(*args, **options)
            reads.append(1)
            if len(reads) == 1:
                recreate(connection, topic_name, [(0, "new", "1")])

        monkeypatch.setattr(ghosts, "read_log", then_anew)
        with users.replica(tmp_path) as replica:
            eventually(lambda: replica.state.name == "ready" and list(replica) == ["new"])


def recreate(connection: Connection, topic: str, rows: Sequence[tuple[Any, ...]]) -> None:
    delete_topic(connection, topic)
    create_topic(connection, topic, partitions=1)
    write(connection, topic, rows)


# Builds


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every topic is large enough for workers."""
    monkeypatch.setattr(following, "_SMALL", 1)


def test_a_topic_that_is_recreated_during_a_build_is_never_shown_as_a_mix(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: None
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, [(0, f"old-{n}", "1") for n in range(5)])
    building: Callable[..., Path] = following.Follower._building
    done: list[int] = []

    def then_anew(self: following.Follower, *args: Any) -> Path:
        place = building(self, *args)
        if not done:
            done.append(1)
            recreate(connection, topic_name, [(0, f"new-{n}", "1") for n in range(8)])
        return place

    monkeypatch.setattr(following.Follower, "_building", then_anew)
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert list(replica) == [f"new-{n}" for n in range(8)]


def test_records_that_are_deleted_while_it_is_built_make_it_begin_again(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: None
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "compact,delete"})
    write(connection, topic_name, [(0, f"key-{n}", "1") for n in range(20)])
    build = following.__dict__["build"]

    def late(*args: Any, **options: Any) -> bool:
        admin = connection.admin()
        for future in admin.delete_records([TopicPartition(topic_name, 0, 15)]).values():
            future.result()
        return bool(build(*args, **options))

    monkeypatch.setattr(following, "build", late)
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert len(replica) == 5


def test_rows_that_are_known_to_be_wrong_are_not_shown_after_a_kill_either(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users:
        users.put("old", 1)
        with users.replica(tmp_path):
            pass
    recreate(connection, topic_name, [(0, "new", "1")])
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED_WHILE_BUILDING, connection.bootstrap_servers, topic_name, str(tmp_path)]
    )
    assert killed.returncode == -signal.SIGKILL
    nowhere = Connection(bootstrap_servers="127.0.0.1:1")
    with Table(nowhere, topic_name).replica(tmp_path, wait=False) as replica:
        assert not replica.position
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert list(replica) == ["new"]


_KILLED_WHILE_BUILDING = """\
import os, sys
from lastword.kafka.connection import Connection
from lastword.replica import following
from lastword.table import Table
following.Follower._building = lambda *_: os.kill(os.getpid(), 9)
servers, topic, folder = sys.argv[1:]
Table(Connection(bootstrap_servers=servers), topic).replica(folder)
"""


def test_odd_keys_and_values_go_through_the_workers(
    connection: Connection, topic_name: str, tmp_path: Path, built: None
) -> None:
    from support.replicas import disagreements, log_now, replica_of

    create_topic(connection, topic_name, partitions=2)
    rows = [(0, b"", "1"), (0, b"x", b""), (1, b"\xff" * 70_000, b"9" * 900_000), (0, b"d", "1"), (0, b"d", None)]
    write(connection, topic_name, rows)
    with replica_of(connection, topic_name, tmp_path) as replica:
        assert disagreements(replica, log_now(connection, topic_name)) == []


# Watching from a position


def test_what_a_watcher_missed_leads_to_what_the_table_shows_also_for_keys_in_two_partitions(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2)
    write(connection, topic_name, [(0, "k", "1", 1000), (1, "k", None, 2000), (0, "s", "1", 2000), (1, "s", "0", 1000)])
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
    write(connection, topic_name, [(0, "a", "1")])
    with Table(connection, topic_name).replica(tmp_path) as replica:
        for start in ("0:99", "7:3", "0:0,7:3"):
            with pytest.raises(BadInput, match=topic_name):
                replica.watch(start)


# States


def test_an_open_transaction_that_came_later_does_not_keep_it_from_being_ready_for_ever_either(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2)
    write(connection, topic_name, [(0, "a", "1"), (1, "b", "1")])
    open_ones: list[Producer] = [leave_open(connection, topic_name, [Put(key=b"t", value=b"1", partition=1)])]
    try:
        # Longer than goals are fresh, so that a second look finds the second transaction.
        with Table(connection, topic_name).replica(tmp_path, wait=False, transaction_patience_s=3.0) as replica:
            eventually(lambda: "transaction is open" in str(replica.state.why))
            open_ones.append(leave_open(connection, topic_name, [Put(key=b"t", value=b"1", partition=0)]))
            eventually(lambda: replica.state.name == "ready", within_s=15)
    finally:
        for producer in open_ones:
            producer.abort_transaction(30)


def test_a_process_that_was_stopped_for_long_is_catching_up_when_it_goes_on(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    stopped = subprocess.Popen(
        [sys.executable, "-c", _SAY_STATES, connection.bootstrap_servers, topic_name, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "ready\n"
        stopped.send_signal(signal.SIGSTOP)
        with Table(connection, topic_name) as users:
            users.put_many((f"key-{n % 1000}", "x" * 100) for n in range(400_000))
        time.sleep(2)
        stopped.send_signal(signal.SIGCONT)
        assert [stopped.stdout.readline() for _ in range(2)] == ["catching-up\n", "ready\n"]
    finally:
        stopped.kill()
        stopped.communicate()


_SAY_STATES = """\
import sys, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster, cluster.table(topic).replica(folder, check_every_s=0.5) as replica:
    said = None
    while True:
        with replica._follower.changed:
            replica._follower.changed.wait(1)
            if replica.state.name != said:
                said = replica.state.name
                print(said, flush=True)
"""


def test_a_shorter_retention_is_stored_at_once_also_under_load(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"delete.retention.ms": "86400000"})
    done = threading.Event()

    def load() -> None:
        producer = connection.producer(linger_ms=0)
        while not done.wait(0.001):
            producer.produce(topic_name, key=f"key-{uuid.uuid4()}", value="1")
            producer.poll(0)
        producer.flush(10)

    with Table(connection, topic_name).replica(tmp_path, check_every_s=0.5) as replica:
        thread = threading.Thread(target=load)
        thread.start()
        try:
            alter_topic(connection, topic_name, settings={"delete.retention.ms": "60000"})
            eventually(lambda: stored_retention(replica) == 60_000, within_s=15)
        finally:
            done.set()
            thread.join()


def stored_retention(replica: Replica) -> int:
    store = replica._follower.store
    assert store is not None
    return store.identity.delete_retention_ms


def test_a_topic_that_is_not_there_and_a_server_that_says_nothing_are_told_apart(
    connection: Connection, tmp_path: Path
) -> None:
    patient = Connection(bootstrap_servers=connection.bootstrap_servers, patience_s=1)
    with pytest.raises(NotFound, match="no topic 'no-such-topic-at-all'"):
        Table(patient, "no-such-topic-at-all").replica(tmp_path / "a")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ClusterUnreachable, match=f"127.0.0.1:{port}"):
            Table(Connection(bootstrap_servers=f"127.0.0.1:{port}", patience_s=1), "t").replica(tmp_path / "b")


def test_a_full_disk_is_a_failure_with_advice_and_the_replica_can_be_closed_and_opened_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    # A limit on the size of files stands for a disk that is full: RocksDB can't write on.
    said = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, connection.bootstrap_servers, topic_name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert "is the disk full? Put that right and open it again" in said.stdout
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert len(replica) == 2000


_FULL_DISK = """\
import resource, signal, sys, time, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster:
    users = cluster.table(topic)
    replica = users.replica(folder)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    users.put_many((f"key-{n}", "x" * 500) for n in range(2000))
    while replica.state.name != "failed":
        time.sleep(0.05)
    print(replica.state.why)
    replica.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with users.replica(folder) as again:
        assert len(again) == 2000
"""


def test_closing_does_not_wait_for_a_broker_that_hangs(tmp_path: Path, connection: Connection, topic_name: str) -> None:
    from lastword.kafka.local import LocalCluster
    from support.command_line import JARS

    with LocalCluster(name="hangs", folder=tmp_path / "hangs", jars=JARS, owned=True) as cluster:
        cluster.start(port=0)
        assert cluster.spec is not None
        hanging = Connection(bootstrap_servers=cluster.spec.bootstrap_servers)
        create_topic(hanging, topic_name, partitions=1)
        replica = Table(hanging, topic_name).replica(tmp_path / "replica", check_every_s=0.5)
        (broker,) = cluster.status()
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            time.sleep(1.5)
            began = time.monotonic()
            replica.close()
            took = time.monotonic() - began
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert took < 5
    assert Position() == replica.position
