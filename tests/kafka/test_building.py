"""A store from nothing on a real broker: its rows are the fold, and no worker is left behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_topic
from lastword.replica.building.long_work import Stopped
from lastword.replica.building.rebuild import build, usable_cpus
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PartitionState
from lastword.replica.store.store import Store
from support.generated_logs import PARTITIONS, Act, Put, fresh_topic, leave_open, logs, write_log
from support.processes import alive, children_of
from support.waiting import eventually

PLENTY_MB = 1024
# Leaves no room for a single row: every batch goes to the disk, and a batch is two records.
NOTHING_MB = 0


def identity_of(topic: str) -> Identity:
    return Identity(
        topic=topic, topic_id="id", cluster_id="cluster", key_codec="string", value_codec="json", delete_retention_ms=1
    )


def built(connection: Connection, topic: str, folder: Path, memory_mb: int) -> bool:
    start, stop = log_bounds(connection, topic)
    return built_between(connection, topic, folder, start, stop, memory_mb=memory_mb)


def built_between(
    connection: Connection,
    topic: str,
    folder: Path,
    start: Position,
    stop: Position,
    *,
    memory_mb: int = 64,
    stopping: threading.Event | None = None,
) -> bool:
    return build(
        connection,
        identity_of(topic),
        folder,
        start=start,
        stop=stop,
        memory_mb=memory_mb,
        progress=lambda *_: None,
        stopping=stopping or threading.Event(),
    )


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    store = Store(folder, readable=lambda _: True)
    try:
        yield store
    finally:
        store.close()


def is_json(value: bytes | None) -> bool:
    return value in (b"null", b"1", b'{"x":1}')


def disagreements(folder: Path, topic: str, records: list[Record], position: dict[int, int]) -> list[str]:
    """Where the store is not what the law makes of the committed records: the oracle of this file."""
    expected, found = fold(records), []
    with opened(folder) as store:
        if list(store.scan()) != [expected[key] for key in sorted(expected)]:
            found.append("rows")
        for partition, end in position.items():
            live = [record for record in expected.values() if record.partition == partition]
            poison = sum(not is_json(record.value) for record in live)
            place = store.partitions[partition]
            if (place.position, place.live_rows, place.poison_rows) != (end, len(live), poison):
                found.append(f"place {place}")
            if place.caught_up_at == 0:
                found.append("caught up")
        if store.identity != identity_of(topic):
            found.append("identity")
    if [path.name for path in folder.iterdir() if "fold" in path.name]:
        found.append("files left")
    return found


def unsplit(log: list[Act]) -> list[Act]:
    """The same log with each key in one partition."""
    return [
        replace(act, puts=tuple(replace(put, partition=len(put.key or b"") % PARTITIONS) for put in act.puts))
        for act in log
    ]


@given(log=logs)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_built_store_is_the_fold_of_what_was_committed_with_any_memory(
    connection: Connection, log: list[Act]
) -> None:
    with fresh_topic(connection) as topic:
        committed = write_log(connection, topic, unsplit(log))
        position = dict(log_bounds(connection, topic)[1])
        for memory_mb in (PLENTY_MB, NOTHING_MB):
            with tempfile.TemporaryDirectory() as folder:
                assert built(connection, topic, Path(folder), memory_mb)
                assert disagreements(Path(folder), topic, committed, position) == []


def puts(*rows: tuple[bytes, bytes | None, int]) -> list[Act]:
    return [Act(puts=tuple(Put(key=key, value=value, partition=p) for key, value, p in rows), ending="plain")]


def test_the_oracle_objects_to_other_rows_another_position_and_wrong_counts(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    log = puts((b"a", b"1", 0), (b"b", b"{", 0), (b"c", b"2", 2), (b"c", None, 2))
    committed = write_log(connection, topic_name, log)
    assert built(connection, topic_name, tmp_path, PLENTY_MB)
    assert disagreements(tmp_path, topic_name, committed, {0: 2, 1: 0, 2: 2}) == []
    assert "rows" in disagreements(tmp_path, topic_name, [r for r in committed if r.key != b"a"], {})
    assert "rows" in disagreements(tmp_path, topic_name, [r for r in committed if not r.is_tombstone], {})
    assert disagreements(tmp_path, topic_name, committed, {0: 3}) != []
    with opened(tmp_path) as store:
        # Poison is counted, the epoch is the last record's, and a partition with nothing to read has no holes.
        assert store.partitions[0]._replace(caught_up_at=0) == PartitionState(
            position=2, leader_epoch=0, epoch_end=2, live_rows=2, poison_rows=1, holes=True
        )
        assert store.partitions[1]._replace(caught_up_at=0) == PartitionState(0)
        store.ingest([], {0: store.partitions[0]._replace(poison_rows=0)})
    assert disagreements(tmp_path, topic_name, committed, {0: 2}) != []


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process can choose its CPUs, and so its workers")
@pytest.mark.parametrize("memory_mb", [PLENTY_MB, NOTHING_MB])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_live_key_in_two_partitions_is_refused(
    connection: Connection, topic_name: str, tmp_path: Path, memory_mb: int, workers: int
) -> None:
    create_topic(connection, topic_name, partitions=2)
    write_log(connection, topic_name, puts((b"a", b"1", 0), (b"a", b"2", 1), (b"b", b"3", 1)))
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, sorted(allowed)[:workers])
        assert not built(connection, topic_name, tmp_path / "split", memory_mb)
        write_log(connection, topic_name, puts((b"a", None, 1)))
        assert built(connection, topic_name, tmp_path / "healed", memory_mb)
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_build_ends_before_an_open_transaction(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=1)
    committed = write_log(connection, topic_name, puts((b"a", b"1", 0)))
    open_one = leave_open(connection, topic_name, [Put(key=b"a", value=b"2", partition=0)])
    write_log(connection, topic_name, puts((b"b", b"3", 0)))
    assert built(connection, topic_name, tmp_path, PLENTY_MB)
    assert disagreements(tmp_path, topic_name, committed, {0: 1}) == []
    open_one.abort_transaction(30)


def test_progress_goes_up_to_what_there_was_to_read(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, puts((b"a", b"1", 0), (b"b", b"2", 0)))
    start, stop = log_bounds(connection, topic_name)
    told: list[tuple[int, int]] = []
    never = threading.Event()
    identity = identity_of(topic_name)
    assert build(
        connection,
        identity,
        tmp_path,
        start=start,
        stop=stop,
        memory_mb=64,
        progress=lambda passed, total: told.append((passed, total)),
        stopping=never,
    )
    assert told[-1] == (2, 2)


def test_a_cluster_that_is_away_stays_a_cluster_that_is_away(tmp_path: Path) -> None:
    nobody = Connection(bootstrap_servers="127.0.0.1:1", patience_s=1)
    with pytest.raises(ClusterUnreachable, match=r"^no Kafka answers at 127\.0\.0\.1:1 "):
        built_between(nobody, "t", tmp_path, Position({0: 0}), Position({0: 9}))


# A stop that no log reaches keeps the workers waiting for records, for as long as a test needs them.
NEVER_REACHED = Position({0: 1_000_000, 1: 1_000_000})


@contextmanager
def endless(connection: Connection, topic: str, folder: Path) -> Iterator[tuple[threading.Event, list[BaseException]]]:
    """A build in a thread of its own that ends only by force: the event that stops it, and how it ended."""
    create_topic(connection, topic, partitions=2)
    stopping, ended = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            built_between(connection, topic, folder, Position({0: 0, 1: 0}), NEVER_REACHED, stopping=stopping)
        except (Stopped, LastwordError) as end:
            ended.append(end)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(lambda: len(workers_of(os.getpid())) == min(2, usable_cpus()))
        yield stopping, ended
    finally:
        stopping.set()
        thread.join(120)
    assert workers_of(os.getpid()) == []


def workers_of(pid: int) -> list[int]:
    return children_of(pid, "lastword.replica.building.worker")


def test_stopping_ends_the_workers_promptly(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    with endless(connection, topic_name, tmp_path) as (stopping, ended):
        stopping.set()
        eventually(lambda: bool(ended), within_s=30)
        assert isinstance(ended[0], Stopped)


def test_a_worker_that_is_killed_gives_one_line_and_takes_the_others_along(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    with endless(connection, topic_name, tmp_path) as (_, ended):
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)
        eventually(lambda: bool(ended))
        assert type(ended[0]) is LastwordError
        assert str(ended[0]).startswith(f"a process that reads {topic_name} was ended by signal 9 in the middle")


@pytest.mark.open
def test_no_secret_is_in_the_arguments_or_the_environment_of_a_worker(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    # Read only with SASL, and so harmless here.
    secret = f"secret-{uuid.uuid4().hex}"
    with endless(replace(connection, properties={"sasl.password": secret}), topic_name, tmp_path):
        for pid in workers_of(os.getpid()):
            # e: with the environment
            shown = subprocess.run(["ps", "eww", "-p", str(pid)], capture_output=True, text=True).stdout
            assert "building.worker" in shown
            assert "PATH=" in shown
            assert secret not in shown


_BUILD_FOR_EVER = """
import sys, threading
from pathlib import Path
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.replica.building.rebuild import build
from lastword.replica.store.identity import Identity

servers, topic, folder = sys.argv[1:]
identity = Identity(topic=topic, topic_id="i", cluster_id="c", key_codec="string", value_codec="json",
                    delete_retention_ms=1)
build(Connection(bootstrap_servers=servers), identity, Path(folder), start=Position({0: 0, 1: 0}),
      stop=Position({0: 1_000_000, 1: 1_000_000}), memory_mb=64, progress=lambda *_: None, stopping=threading.Event())
"""


@pytest.mark.open
def test_workers_end_with_an_owner_that_is_killed(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=2)
    command = [sys.executable, "-c", _BUILD_FOR_EVER, connection.bootstrap_servers, topic_name, str(tmp_path)]
    with subprocess.Popen(command) as owner:
        eventually(lambda: len(workers_of(owner.pid)) == min(2, usable_cpus()))
        workers = workers_of(owner.pid)
        owner.kill()
    eventually(lambda: not any(map(alive, workers)))


def test_a_worker_whose_owner_died_before_it_gave_the_job_ends_without_a_word() -> None:
    for said in (b"", b'{"owner": 1, "topic"'):
        worker = subprocess.run(
            [sys.executable, "-m", "lastword.replica.building.worker", str(os.getpid())],
            input=said,
            capture_output=True,
            timeout=30,
        )
        assert (worker.returncode, worker.stdout, worker.stderr) == (1, b"", b"")
