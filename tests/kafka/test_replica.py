"""The replica as its user sees it, against the reference fold on generated logs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastword.api.table import Table
from lastword.core.errors import (
    BadInput,
    ReplicaUnusable,
)
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_topic
from support.generated_logs import PARTITIONS, Act, Put, fresh_topic, logs, write_log
from support.replicas import (
    disagreements,
    replica_of,
    wait_until_caught_up,
)
from support.waiting import eventually


@given(before=logs, while_running=logs, while_away=logs)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_rows_are_the_fold_of_what_was_committed(
    connection: Connection,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Act],
    while_running: list[Act],
    while_away: list[Act],
) -> None:
    """Of what was there before, came while the replica ran, and came while it was away."""
    folder = tmp_path_factory.mktemp("replica")
    with fresh_topic(connection) as topic:
        committed = write_log(connection, topic, before)
        with replica_of(connection, topic, folder) as replica:
            assert replica.position.covers(log_bounds(connection, topic)[1])
            assert disagreements(replica, committed) == []
            committed += write_log(connection, topic, while_running)
            wait_until_caught_up(connection, replica)
            assert disagreements(replica, committed) == []
        committed += write_log(connection, topic, while_away)
        with replica_of(connection, topic, folder) as replica:
            assert replica.position.covers(log_bounds(connection, topic)[1])
            assert disagreements(replica, committed) == []


def test_the_oracle_objects_when_a_record_is_missing_or_too_many(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    puts = tuple(Put(key=key, value=b"1", partition=0) for key in (b"a", b"b"))
    committed = write_log(connection, topic_name, [Act(puts=puts, ending="plain")])
    with replica_of(connection, topic_name, tmp_path) as replica:
        assert disagreements(replica, committed) == []
        assert disagreements(replica, committed[:1])[0].startswith("rows")
        tombstone = Record(b"a", None, 1, 0, 0)
        assert disagreements(replica, [*committed, tombstone]) == []  # of another partition, where it removes nothing
        assert disagreements(replica, [committed[1]])[0].startswith("rows")


def test_a_replica_is_a_mapping_in_key_order_that_follows_its_table(users: Table, tmp_path: Path) -> None:
    for number in (3, 1, 2):
        users.put(f"user-{number}", {"number": number})
    with users.replica(tmp_path) as replica:
        assert replica.state.name == "ready"
        assert list(replica) == ["user-1", "user-2", "user-3"]
        assert list(replica.values()) == [{"number": 1}, {"number": 2}, {"number": 3}]
        assert dict(replica.items()) == replica == {f"user-{n}": {"number": n} for n in (1, 2, 3)}
        assert ("user-1" in replica, "user-9" in replica) == (True, False)
        assert (replica.get("user-9"), replica.get("user-9", 5)) == (None, 5)
        with pytest.raises(KeyError, match="user-9"):
            replica["user-9"]

        replica.wait_for(users.put("user-1", None))
        assert ("user-1" in replica, replica["user-1"]) == (True, None)
        ack = users.delete("user-1")
        replica.wait_for(ack)
        assert ("user-1" in replica, len(replica)) == (False, 2)
        assert replica.position.covers(ack.position)
        eventually(lambda: replica.lag == 0)


def test_a_scan_takes_a_prefix_and_a_range_and_does_not_see_what_comes_after_it_began(
    users: Table, tmp_path: Path
) -> None:
    users.put_many((key, 1) for key in ("a", "user-1", "user-2", "user-3", "z"))
    with users.replica(tmp_path) as replica:
        assert [row.key for row in replica.scan(prefix="user-")] == ["user-1", "user-2", "user-3"]
        assert [row.key for row in replica.scan(start="user-1", end="user-3")] == ["user-1", "user-2"]
        assert [row.key for row in replica.scan(prefix="user-", start="user-2")] == ["user-2", "user-3"]
        assert [row.key for row in replica.scan(prefix="user-", start="b", end="zz")] == ["user-1", "user-2", "user-3"]
        assert list(replica.scan(prefix="x")) == []
        begun = replica.scan()
        replica.wait_for(users.put("b", 1))
        assert [row.key for row in begun] == ["a", "user-1", "user-2", "user-3", "z"]


def test_a_restart_goes_on_from_the_position_on_disk(users: Table, tmp_path: Path) -> None:
    users.put("a", 1)
    with users.replica(tmp_path) as replica:
        position = replica.position
    ack = users.put("b", 2)
    with users.replica(tmp_path, wait=False) as replica:
        assert (replica["a"], replica.position) == (1, position) or replica.position.covers(ack.position)
        replica.wait_for(ack)
        assert dict(replica) == {"a": 1, "b": 2}
    assert [path.name for path in tmp_path.glob("*-*")] == ["store-1"]


def test_a_key_in_two_partitions_shows_the_later_row_and_a_tombstone_removes_its_own_partitions(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2)

    def put(value: bytes | None, partition: int) -> list[Record]:
        # Time passes between them, so that the timestamps differ.
        time.sleep(0.005)
        return write_log(
            connection, topic_name, [Act(puts=(Put(key=b"a", value=value, partition=partition),), ending="plain")]
        )

    committed = put(b"1", 0) + put(b"2", 1)
    with replica_of(connection, topic_name, tmp_path) as replica, replica.watch() as watch:
        assert (replica[b"a"], len(replica), replica.split_keys) == (2, 1, 1)
        committed += put(b"3", 0)
        assert next(watch).value == 3
        committed += put(None, 0)
        # What is left is the other partition's row: a change, but no delete.
        change = next(watch)
        assert (change.value, change.partition, change.deleted) == (2, 1, False)
        assert disagreements(replica, committed) == []
        committed += put(None, 1)
        assert next(watch).deleted
        assert (len(replica), replica.split_keys) == (0, 0)


def test_a_value_that_can_not_be_read_is_served_as_bytes_with_the_reason_and_the_last_good_one_is_kept(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users, users.replica(tmp_path) as replica:
        replica.wait_for(users.put("a", {"x": 1}))
        with Table(connection, topic_name, value="bytes") as raw:
            replica.wait_for(raw.put("a", b"{broken"))
        row = replica.row("a")
        assert row is not None
        assert (row.value, replica["a"], replica.last_good("a"), replica.poison_rows) == (
            b"{broken",
            b"{broken",
            {"x": 1},
            1,
        )
        assert "not JSON" in str(row.decode_error)
        replica.wait_for(users.put("a", 2))
        assert (replica["a"], replica.last_good("a"), replica.poison_rows) == (2, None, 0)


@pytest.mark.open
def test_a_second_owner_is_told_which_process_has_the_folder(users: Table, tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, users._connection.bootstrap_servers, users.topic, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(ReplicaUnusable, match=f"in use by process {holder.pid}: stop that process, or give"):
            users.replica(tmp_path)
    finally:
        holder.communicate("")
    with users.replica(tmp_path) as replica:
        assert replica.state.name == "ready"
        with pytest.raises(ReplicaUnusable, match="open in this process already"):
            users.replica(tmp_path)


_HOLD = """\
import sys, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster, cluster.table(topic).replica(folder):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_a_folder_of_another_topic_is_refused(connection: Connection, users: Table, tmp_path: Path) -> None:
    with users.replica(tmp_path):
        pass
    with fresh_topic(connection) as other, pytest.raises(ReplicaUnusable, match=f"the topic '{users.topic}', not of"):
        Table(connection, other).replica(tmp_path)


def test_what_is_no_position_prefix_or_folder_is_refused_in_one_line(users: Table, tmp_path: Path) -> None:
    with users.replica(tmp_path / "replica") as replica:
        for mistake in (
            lambda: replica.wait_for(5),  # type: ignore[arg-type]
            lambda: replica.wait_for("nonsense"),
            lambda: replica.wait_for("0:1", "soon"),  # type: ignore[arg-type]
            lambda: replica.watch(5),  # type: ignore[arg-type]
            lambda: replica.watch("77:1"),
            lambda: replica.scan(prefix=5),  # type: ignore[arg-type]
            lambda: replica[5],
            lambda: 5 in replica,
            lambda: users.replica(""),
            lambda: users.replica(5),  # type: ignore[arg-type]
        ):
            with pytest.raises(BadInput, match=r": .+"):
                mistake()


def test_readers_in_many_threads_see_each_key_only_move_forward(users: Table, tmp_path: Path) -> None:
    wrong: list[str] = []
    with users.replica(tmp_path) as replica:
        users.put("a", 0)
        eventually(lambda: "a" in replica)
        done = threading.Event()

        def read() -> None:
            last = 0
            while not done.is_set():
                position = replica.position
                row = replica.row("a")
                if row is None or row.value < last or row.offset + 1 < position[row.partition]:
                    wrong.append(f"{row} after {last} at {position}")
                last = row.value if row is not None else last
                # Four that never rest would leave the writer no turn.
                time.sleep(0.0001)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for value in range(1, 300):
            ack = users.put("a", value)
        replica.wait_for(ack)
        done.set()
        for thread in threads:
            thread.join()
        assert replica["a"] == 299
    assert wrong == []


def test_a_replica_without_a_folder_lives_under_the_home(
    users: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LASTWORD_HOME", str(tmp_path))
    with users.replica() as replica:
        assert replica.folder.parent.parent == tmp_path / "replicas"
        assert replica.folder.name == users.topic


@given(st.lists(st.binary(min_size=1, max_size=3), max_size=8), st.binary(max_size=2))
def test_the_end_of_a_prefix_is_just_after_its_last_key(keys: list[bytes], prefix: bytes) -> None:
    from lastword.replica.reads import after_prefix

    end = after_prefix(prefix)
    for key in keys:
        assert key.startswith(prefix) == (key >= prefix and (end is None or key < end))
