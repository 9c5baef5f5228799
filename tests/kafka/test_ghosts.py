"""Rows whose tombstones were compacted away before the replica could read them: they are swept, and only they."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.core.errors import (
    HistoryLost,
)
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.replica.ghost_sweep import sweep
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSteps
from lastword.replica.store.apply_batch import Applied
from support.compacted_logs import aborted_transaction
from support.replicas import (
    QUICK,
    compact_tombstones_away,
    make_ghosts,
    make_table,
    recreate,
    replica_of,
    store_on_disk,
    write_rows,
)
from support.waiting import eventually


def sweeping(
    sweep: Callable[..., Iterator[Applied]], connection: Connection, topic: str, folder: Path, **options: Any
) -> Replica:
    """A replica that removes its ghosts by the given sweep."""
    return replica_of(connection, topic, folder, key="string", steps=ReplicaSteps(sweep=sweep), **options)


def once_set(gate: threading.Event) -> Callable[..., Iterator[Applied]]:
    """The sweep, which begins when the gate is set."""

    def gated(*args: Any, **options: Any) -> Iterator[Applied]:
        gate.wait(30)
        yield from sweep(*args, **options)

    return gated


def test_a_key_whose_tombstone_was_compacted_away_while_the_replica_was_away_is_swept(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    watched = threading.Event()
    with make_table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("ghost", 2), ("b", 3)])
        with users.replica(tmp_path / "replica") as replica:
            assert len(replica) == 3
            position = replica.position
        users.delete("ghost")
        compact_tombstones_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        folder = tmp_path / "replica"
        with sweeping(once_set(watched), connection, topic_name, folder, wait=False) as replica:
            watch = replica.watch()
            watched.set()
            replica.wait_until_ready()
            assert dict(replica) == {"a": 1, "b": 3}
            assert (len(replica), replica.state.deletes) == (2, "certain")
            change = next(watch)
            assert (change.key, change.deleted, change.swept) == ("ghost", True, True)
            with pytest.raises(HistoryLost, match="a delete may be missing"):
                replica.watch(position)


def test_without_the_sweep_the_ghost_would_be_shown(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    """The negative control of the test above."""
    with make_table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        users.delete("ghost")
        compact_tombstones_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        with sweeping(lambda *_, **__: iter(()), connection, topic_name, tmp_path / "replica") as replica:
            assert dict(replica) == {"a": 1, "ghost": 2}


@pytest.mark.open
def test_a_replica_that_stalls_for_longer_than_tombstones_live_sweeps_when_it_goes_on(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with make_table(connection, topic_name, QUICK) as users:
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
            compact_tombstones_away(connection, topic_name, tmp_path / "home")
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
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    swept: list[int] = []

    def note(_connection: object, _store: object, _folder: object, partition: int, **_: object) -> Iterator[Applied]:
        swept.append(partition)
        return iter(())

    with make_table(connection, topic_name, QUICK) as users:
        users.put_many([("a", 1), ("b", 2)])
        with sweeping(note, connection, topic_name, tmp_path):
            pass
        time.sleep(0.7)
        with sweeping(note, connection, topic_name, tmp_path):
            pass
        # Every offset is there: no tombstone can have gone.
        users.put("c", 3)
        users.delete("a")
        with sweeping(note, connection, topic_name, tmp_path) as replica:
            assert dict(replica) == {"b": 2, "c": 3}
        assert swept == []
        # Here one is missing.
        with aborted_transaction(connection, topic_name, records=1):
            pass
        time.sleep(0.7)
        with sweeping(note, connection, topic_name, tmp_path):
            assert swept == [0]


def test_a_pass_that_takes_longer_than_tombstones_live_is_repeated_and_then_deletes_are_uncertain(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    passes: list[str] = []

    def slow(*args: object, **options: object) -> Iterator[list[Record]]:
        if "start" not in options:
            passes.append(topic_name)
        for batch in read_log(*args, **options):  # type: ignore[arg-type]
            time.sleep(0.6)
            yield batch

    with make_table(connection, topic_name, QUICK) as users:
        users.put("a", 1)
        with users.replica(tmp_path):
            pass
        with aborted_transaction(connection, topic_name, records=1):
            pass
        users.put("b", 2)
        time.sleep(0.7)
        with sweeping(partial(sweep, read=slow), connection, topic_name, tmp_path) as replica:
            assert len(passes) == 3
            assert (replica.state.name, replica.state.deletes) == ("ready", "uncertain")
            assert "deletes: uncertain" in str(replica.state)
            assert dict(replica) == {"a": 1, "b": 2}
        # The next start is a new chance.
        with users.replica(tmp_path) as replica:
            assert replica.state.deletes == "certain"


def test_a_sweep_of_many_keys_notes_them_on_disk(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    of_many_keys = partial(sweep, keys_in_memory=10, ghosts_at_once=3)
    with make_table(connection, topic_name, QUICK) as users:
        users.put_many([(f"key-{n:03}", n) for n in range(100)])
        with users.replica(tmp_path / "replica"):
            pass
        for number in range(0, 40, 2):
            users.delete(f"key-{number:03}")
        users.put("key-000", "again")
        compact_tombstones_away(connection, topic_name, tmp_path / "home")
        time.sleep(0.7)
        with sweeping(of_many_keys, connection, topic_name, tmp_path / "replica") as replica:
            gone = {f"key-{n:03}" for n in range(2, 40, 2)}
            assert set(replica) == {f"key-{n:03}" for n in range(100)} - gone
            assert len(replica) == 81
        assert list((tmp_path / "replica").glob("scratch-*")) == []


def test_a_watcher_that_comes_back_to_where_ghosts_were_swept_is_told_to_start_over(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("ghost", 2)])
        with users.replica(tmp_path / "replica"):
            pass
        make_ghosts(connection, topic_name, tmp_path / "home", "ghost")
        gate, folder = threading.Event(), tmp_path / "replica"
        with sweeping(once_set(gate), connection, topic_name, folder, wait=False) as replica:
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
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2, settings=QUICK)
    write_rows(connection, topic_name, [(0, "k", "1", 1000), (1, "k", "2", 2000), (1, "x", "1", 2000)])
    with Table(connection, topic_name) as users:
        with users.replica(tmp_path / "replica") as replica:
            assert (replica["k"], replica.split_keys) == (2, 1)
        write_rows(connection, topic_name, [(1, "k", None)])
        compact_topic(connection, topic_name, home=tmp_path / "home")
        time.sleep(0.7)
        gate, folder = threading.Event(), tmp_path / "replica"
        with sweeping(once_set(gate), connection, topic_name, folder, wait=False) as replica:
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
    make_ghosts(connection, topic_name, tmp_path / "home", "ghost")
    with store_on_disk(tmp_path / "replica") as (folder, store):
        (applied,) = sweep(connection, store, folder, 0, retention_ms=60_000, stopping=threading.Event())
        assert [record.key for record in applied.records] == [b"ghost"]
        assert [record.key for record in store.scan()] == [b"a"]


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
        make_ghosts(connection, topic_name, tmp_path / "home", "ghost")
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
        make_ghosts(connection, topic_name, tmp_path / "home", "ghost")
        # As a kill between the last commit and the sweep leaves it: at the end, with holes behind it.
        end = log_end(connection, topic_name)
        with store_on_disk(tmp_path / "replica") as (_, store):
            store.apply([], {0: store.partitions[0]._replace(position=end, holes=True, caught_up_at=caught_up_at)})
        with users.replica(tmp_path / "replica") as replica:
            assert list(replica) == ["a"]


def log_end(connection: Connection, topic: str) -> int:
    return log_bounds(connection, topic)[1][0]


def test_where_tombstones_live_for_no_time_a_partition_is_not_read_again_for_every_transaction(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"delete.retention.ms": "0"})
    sweeps: list[int] = []

    def noted(*args: Any, **options: Any) -> Iterator[Applied]:
        sweeps.append(1)
        yield from sweep(*args, **options)

    began = time.monotonic()
    with sweeping(noted, connection, topic_name, tmp_path, check_every_s=300):
        for _ in range(8):
            with aborted_transaction(connection, topic_name, records=1):
                pass
            eventually(lambda: len(sweeps) > 0)
        # A second is the shortest pause between two looks.
        assert len(sweeps) <= 1 + time.monotonic() - began


def test_a_topic_that_is_recreated_in_the_middle_of_a_sweep_is_built_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([(f"key-{n}", 1) for n in range(5)])
        with users.replica(tmp_path):
            pass
        with aborted_transaction(connection, topic_name, records=1):
            pass
        time.sleep(0.7)
        reads: list[int] = []

        def then_anew(*args: Any, **options: Any) -> Iterator[list[Record]]:
            yield from read_log(*args, **options)
            reads.append(1)
            if len(reads) == 1:
                recreate(connection, topic_name, [(0, "new", "1")])

        with sweeping(partial(sweep, read=then_anew), connection, topic_name, tmp_path) as replica:
            eventually(lambda: replica.state.name == "ready" and list(replica) == ["new"])
