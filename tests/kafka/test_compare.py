"""The verb `compare`, between real servers: equal, written to, behind, altered by hand."""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.replica.store.row_layout import PARTITION, pack_partition_state, pack_row
from lastword.replica.store.store import Store
from lastword.serve.http.limits import Limits
from lastword.serve.running import Front, Running, TableToServe, running
from support.command_line import CommandLine
from support.replicas import log_now, store_of, store_on_disk
from support.serve_instance import Instance

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


@pytest.fixture
def pair(lastword: CommandLine, topic: str, tmp_path: Path) -> Iterator[tuple[Instance, Instance]]:
    """Two instances over one topic."""
    with (
        Instance(lastword, tmp_path / "one", f"users={topic}") as one,
        Instance(lastword, tmp_path / "two", f"users={topic}") as two,
    ):
        yield one, two


def fill(connection: Connection, topic: str, rows: int, *instances: Instance) -> None:
    """Writes rows, deletes a tenth of them again, and returns when the instances have read that."""
    producer = connection.producer()
    for number in range(rows):
        producer.produce(topic, key=f"user-{number:04}", value=json.dumps({"name": "x" * 50, "number": number}))
    for number in range(0, rows, 10):
        producer.produce(topic, key=f"user-{number:04}", value=None)
    assert producer.flush(30) == 0
    for instance in instances:
        assert instance.ask(f"/tables/users/count?min_position={end_of(connection, topic)}").status == 200


def compare(lastword: CommandLine, first: str, second: str, *words: str) -> Done:
    return lastword.run("compare", first, second, *words)


def test_two_instances_at_rest_are_equal(
    lastword: CommandLine, connection: Connection, topic: str, pair: tuple[Instance, Instance]
) -> None:
    fill(connection, topic, 40, *pair)
    one, two = pair
    done = compare(lastword, one.url, two.url)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"users: equal, 36 rows at {end_of(connection, topic)}\n",
        "",
    )
    told = compare(lastword, f"{one.url}/tables/users", f"{two.url}/tables/users", "--json")
    assert (told.returncode, json.loads(told.stdout)) == (
        0,
        {
            "table": "users",
            "equal": True,
            "position": end_of(connection, topic),
            "log_starts": ["0:0,1:0,2:0", "0:0,1:0,2:0"],
            "rows": 36,
            "explained": 0,
            "left": 0,
            "different": 0,
            "differences": [],
        },
    )


def end_of(connection: Connection, topic: str) -> str:
    """The position after everything that is in the log; every partition has something."""
    ends: dict[int, int] = {}
    for record in log_now(connection, topic):
        ends[record.partition] = record.offset + 1
    return ",".join(f"{partition}:{end}" for partition, end in sorted(ends.items()))


@contextmanager
def written_to(connection: Connection, topic: str, keys: int) -> Iterator[list[int]]:
    """Some hundred writes a second to any of the keys, a fifth of them deletes; how many there were so far."""
    stopping, written, dice = threading.Event(), [0], random.Random(7)
    producer = connection.producer(linger_ms=0)

    def write() -> None:
        while not stopping.wait(0.002):
            key = f"user-{dice.randrange(keys):04}"
            producer.produce(topic, key=key, value=None if dice.random() < 0.2 else json.dumps({"n": written[0]}))
            producer.poll(0)
            written[0] += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stopping.set()
        thread.join()
        producer.flush(10)


@pytest.mark.parametrize("keys", [30, 3000])
def test_two_instances_that_are_written_to_are_equal(
    lastword: CommandLine, connection: Connection, topic: str, pair: tuple[Instance, Instance], keys: int
) -> None:
    fill(connection, topic, keys, *pair)
    with written_to(connection, topic, keys) as written:
        for _ in range(4):
            before = written[0]
            done = compare(lastword, pair[0].url, pair[1].url)
            assert (done.returncode, done.stdout[:14]) == (0, "users: equal, "), done.stdout + done.stderr
            assert written[0] > before


def test_a_row_that_is_wrong_is_found_while_all_others_are_written_to(
    lastword: CommandLine, connection: Connection, topic: str, pair: tuple[Instance, Instance]
) -> None:
    Table(connection, topic).put("wrong", 1)
    fill(connection, topic, 200, *pair)
    altered(pair[0], topic, lambda store: replaced(store, b"wrong", b"2"))
    with written_to(connection, topic, 200):
        done = compare(lastword, pair[0].url, pair[1].url, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["different"], [each["key"] for each in told["differences"]]) == (1, 1, ["wrong"])


def test_an_instance_that_stands_still_is_explained_by_its_position(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    """Its commits hang: it answers, and does not have what was written since."""
    users = Table(connection, topic)
    for name in ("updated", "deleted", "kept"):
        users.put(name, 1)
    wanted = [TableToServe.parse(f"users={topic}")]
    with (
        running(connection, wanted, tmp_path / "one", Front(port=0)) as one,
        running(connection, wanted, tmp_path / "two", Front(port=0), limits=Limits(wait_s=1)) as two,
    ):
        ready(one, two)
        with two.tables[0].replica._follower.watchers.committing():
            users.put("updated", 2)
            users.delete("deleted")
            one.tables[0].replica.wait_for(users.put("added", 1))
            done = compare(lastword, one.url, two.url)
            assert (done.returncode, done.stdout.startswith("users: equal, 1 row at ")) == (0, True), done.stdout
            assert done.stdout.endswith(", 3 rows explained by a lower position\n")
            assert f"{two.url} is behind: users did not reach " in done.stderr
            assert compare(lastword, two.url, one.url).stdout == done.stdout
        done = compare(lastword, one.url, two.url)
        assert (done.returncode, done.stdout.startswith("users: equal, 3 rows at ")) == (0, True), done.stdout
        assert "explained" not in done.stdout


def ready(*instances: Running) -> None:
    for instance in instances:
        for table in instance.tables:
            table.replica.wait_until_ready(120)


def altered(instance: Instance, topic: str, alter: Callable[[Store], None]) -> None:
    """Stops the instance, changes its store by hand, and starts it again."""
    instance.stop()
    with store_on_disk(instance.folder / topic) as (_, store):
        alter(store)
    instance.start()


def replaced(store: Store, key: bytes, value: bytes) -> None:
    record = store.get(key)
    assert record is not None
    changed = Record(key, value, record.partition, record.offset, record.timestamp)
    store.rows.put(key, pack_row(changed, poison=not store.readable(value)))


def removed(store: Store, key: bytes) -> None:
    record = store.get(key)
    assert record is not None
    store.sweep([key], record.partition, store.partitions[record.partition])


def added(store: Store, key: bytes, value: bytes) -> None:
    """With its count: a store that holds another number of rows than it says would be built again."""
    partition, place = next(iter(store.partitions.items()))
    store.rows.put(key, pack_row(Record(key, value, partition, 0, 0), poison=False))
    counted = store.partitions[partition]._replace(live_rows=place.live_rows + 1)
    store.database.partition_states.put(PARTITION.pack(partition), pack_partition_state(counted))


def test_rows_that_differ_in_their_headers_alone_are_found(
    lastword: CommandLine, connection: Connection, topic: str, pair: tuple[Instance, Instance]
) -> None:
    ack = Table(connection, topic).put("a", 1, {"trace": "x"})
    for instance in pair:
        assert instance.ask(f"/tables/users/count?min_position={ack.position}").status == 200
    assert compare(lastword, pair[0].url, pair[1].url).returncode == 0

    def alter(store: Store) -> None:
        replaced(store, b"a", b"1")

    altered(pair[1], topic, alter)
    done = compare(lastword, pair[0].url, pair[1].url)
    assert done.returncode == 1
    assert [row.split(maxsplit=4)[-1] for row in done.stdout.splitlines()[2:3]] == [
        '1 with the headers [["trace","x"]]'
    ]
    assert done.stdout.splitlines()[3].endswith("1 without headers")
    (told,) = json.loads(compare(lastword, pair[0].url, pair[1].url, "--json").stdout)["differences"]
    assert (told["first"]["headers"], "headers" in told["second"]) == ([["trace", "x"]], False)


def test_rows_that_were_altered_by_hand_are_found(
    lastword: CommandLine, connection: Connection, topic: str, pair: tuple[Instance, Instance]
) -> None:
    fill(connection, topic, 40, *pair)
    places = {record.key: f"{record.partition}  {record.offset}" for record in log_now(connection, topic)}

    def alter(store: Store) -> None:
        replaced(store, b"user-0001", b'{"name": "Mallory"}')
        removed(store, b"user-0002")
        added(store, b"user-0003x", b'"from nowhere"')

    altered(pair[1], topic, alter)
    for urls in ((pair[0].url, pair[1].url), (pair[1].url, pair[0].url)):
        done = compare(lastword, *urls)
        assert done.returncode == 1
        line, header, *rows = done.stdout.splitlines()
        assert line == f"users: not equal, 3 rows differ, 34 rows equal at {end_of(connection, topic)}"
        assert header.split() == ["KEY", "AT", "PARTITION", "OFFSET", "VALUE"]
        assert [row.split()[0] for row in rows[::2]] == ["user-0001", "user-0002", "user-0003x"]
        assert [row.split()[0] for row in rows[1::2]] == [urls[1]] * 3
        assert {row.index("http") for row in rows} == {header.index("AT")}
        assert places[b"user-0001"].split() == rows[0].split()[2:4] == rows[1].split()[1:3]
        text = done.stdout
        assert '{"name": "Mallory"}' in text
        assert '"from nowhere"' in text
        assert text.count("-          -       no row") == 2
    first = json.loads(compare(lastword, pair[0].url, pair[1].url, "--json").stdout)["differences"][1]
    assert (first["key"], first["second"], first["first"]["value"][:9]) == ("user-0002", None, '{"name": ')


def test_a_table_that_only_one_server_has_is_a_difference(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    other = f"{topic}-other"
    create_topic(connection, other, partitions=1)
    both = [TableToServe.parse(f"users={topic}"), TableToServe.parse(f"more={other}")]
    with (
        running(connection, both, tmp_path / "one", Front(port=0)) as one,
        running(connection, both[:1], tmp_path / "two", Front(port=0)) as two,
    ):
        ready(one, two)
        done = compare(lastword, one.url, two.url)
        assert (done.returncode, done.stdout.splitlines()) == (
            1,
            [
                f"more: not equal, no such table at {two.url}",
                "users: equal, 0 rows at 0:0,1:0,2:0",
            ],
        )
        assert compare(lastword, f"{one.url}/tables/users", two.url).returncode == 0
        done = compare(lastword, f"{one.url}/tables/user", f"{two.url}/tables/user")
        assert (done.returncode, "did you mean 'users'?" in done.stderr) == (2, True)
        done = compare(lastword, f"{one.url}/tables/users", f"{two.url}/tables/more")
        assert (done.returncode, "are two tables" in done.stderr) == (2, True)
    delete_topic(connection, other)


def test_of_two_topics_keys_values_and_headers_are_compared_and_that_is_said(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    copy = f"{topic}-copy"
    create_topic(connection, copy, partitions=1)
    for name, rows in ((topic, [("a", 1), ("b", 2)]), (copy, [("c", 0), ("b", 2), ("a", 1)])):
        with Table(connection, name) as table:
            for key, value in rows:
                table.put(key, value)
    with (
        running(connection, [TableToServe.parse(f"users={topic}")], tmp_path / "one", Front(port=0)) as one,
        running(connection, [TableToServe.parse(f"users={copy}")], tmp_path / "two", Front(port=0)) as two,
    ):
        ready(one, two)
        done = compare(lastword, one.url, two.url)
        assert (
            done.returncode,
            "users: not equal, 1 row differs, 2 rows equal; compared by key, value and headers" in done.stdout,
        ) == (
            1,
            True,
        )
        two.tables[0].replica.wait_for(Table(connection, copy).delete("c"))
        done = compare(lastword, one.url, two.url)
        assert (done.returncode, done.stdout[:35]) == (0, "users: equal, 2 rows; compared by k")
        assert "have no common positions" in done.stdout
    delete_topic(connection, copy)


def test_keys_of_every_kind_are_compared(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    """Also those that no address can name: bytes that are not text, U+FFFD, and very long ones."""
    producer = connection.producer()
    for key in (b"\xff\x00", "\ufffd".encode(), b"k" * 5000, b"a/b?c=%41", b" "):
        producer.produce(topic, key=key, value=b"not JSON")
    assert producer.flush(10) == 0
    with (
        running(connection, [TableToServe.parse(f"users={topic}")], tmp_path / "one", Front(port=0)) as one,
        running(connection, [TableToServe.parse(f"users={topic}")], tmp_path / "two", Front(port=0)) as two,
    ):
        ready(one, two)
        assert compare(lastword, one.url, two.url).stdout.startswith("users: equal, 5 rows at ")
        store = store_of(two.tables[0].replica)
        replaced(store, b"\xff\x00", b"not  JSON")
        done = compare(lastword, one.url, two.url)
        assert (done.returncode, done.stdout.splitlines()[0][:41]) == (1, "users: not equal, 1 row differs, 4 rows e")
