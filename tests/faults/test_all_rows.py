"""All rows in one answer: whole, or cut off so that nobody takes a part for the whole."""

from __future__ import annotations

import gzip
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.replica.store.store import Store
from lastword.serve.http.limits import Limits
from lastword.serve.running import Front, Running, TableToServe, running
from support.damage import flip, largest_table
from support.replicas import recreate, store_of
from support.slow_reader import SlowReader, is_cut, metric, value_of
from support.waiting import eventually

ROWS = 3029
EVERY_ROW = [value_of(number) for number in range(ROWS)]


@pytest.fixture
def filled(users: Table) -> Table:
    users.put_many((f"key-{number:05}", value_of(number)) for number in range(ROWS))
    return users


@contextmanager
def served(connection: Connection, topic: str, folder: Path, **limits: Any) -> Iterator[Running]:
    wanted = [TableToServe.parse(f"users={topic},short=true")]
    with running(connection, wanted, folder, Front(port=0), limits=Limits(**limits)) as made:
        made.tables[0].replica.wait_until_ready(60)
        yield made


def test_all_rows_come_in_one_array_as_they_were_when_it_began(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path) as made:
        replica = made.tables[0].replica
        position = str(replica.position)
        with SlowReader(made.url) as slow, SlowReader(made.url, accept_encoding="gzip") as packed:
            replica.wait_for(filled.put("key-03028", {"new": True}))
            replica.wait_for(filled.delete("key-02000"))
            assert (slow.answer.status, slow.answer.headers["content-type"]) == (200, "application/json")
            assert slow.answer.headers["x-lastword-position"] == position
            assert slow.answer.headers["link"] is None
            assert json.loads(slow.rest()) == EVERY_ROW
            assert (packed.answer.headers["content-encoding"], packed.answer.headers["vary"]) == (
                "gzip",
                "accept-encoding",
            )
            assert json.loads(gzip.decompress(packed.rest())) == EVERY_ROW
        with SlowReader(made.url) as after:
            assert json.loads(after.rest()) == [*EVERY_ROW[:2000], *EVERY_ROW[2001:-1], {"new": True}]
        asking = http.client.HTTPConnection(made.url.removeprefix("http://"), timeout=30)
        # On one connection: what a HEAD and a stream leave behind is a connection to be used again.
        for method, path in (("HEAD", "/users"), ("GET", "/users?limit=1000"), ("GET", "/users"), ("GET", "/users")):
            asking.request(method, path)
            answer = asking.getresponse()
            body = answer.read()
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert (answer.headers["link"] is not None) == ("limit" in path)
            # A length that is not known is not given, and 0 would be wrong.
            assert ("content-length" in answer.headers) == ("limit" in path)
            if method == "GET":
                assert len(json.loads(body)) == (1000 if "limit" in path else ROWS - 1)
        asking.close()
        assert metric(made.url, "lastword_row_streams_cut_total") == 0


def test_damage_that_is_found_after_the_answer_began_cuts_it_off(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path) as made:
        replica = made.tables[0].replica
        store = store_of(replica)
        store.flush()
        table = largest_table(store.folder)
        del store
        # Far behind the first rows: the answer has begun when its block is read.
        flip(table, table.stat().st_size * 3 // 4)
        with SlowReader(made.url) as plain, SlowReader(made.url, accept_encoding="gzip") as packed:
            assert (plain.answer.status, packed.answer.status) == (200, 200)
            assert is_cut(plain)
            assert is_cut(packed)
        assert metric(made.url, "lastword_row_streams_cut_total") == 2
        eventually(lambda: replica.state.name == "ready", within_s=60)
        assert replica.damages_found == 1
        with SlowReader(made.url) as whole:
            assert json.loads(whole.rest()) == EVERY_ROW


def test_clients_that_read_nothing_cost_little_and_what_is_kept_for_them_goes_with_them(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path, unsent_bytes=32 * 1024 * 1024) as made:
        folder = store_of(made.tables[0].replica).folder
        with SlowReader(made.url) as first:
            assert json.loads(first.rest()) == EVERY_ROW
        before = metric(made.url, "process_resident_memory_bytes")
        with ExitStack() as idle:
            readers = [idle.enter_context(SlowReader(made.url)) for _ in range(40)]
            statuses = [reader.answer.status for reader in readers]
            # Each counts for 1 MiB.
            assert (statuses.count(200), statuses.count(503)) == (32, 8)
            assert json.loads(readers[-1].rest()) == {
                "error": "too many large answers wait for their clients to read them"
            }
            # All rows of all clients would be 380 MB.
            assert metric(made.url, "process_resident_memory_bytes") - before < 100e6
            assert metric(made.url, "lastword_row_streams") == 32
            # One that reads after all gets every row.
            assert json.loads(readers[0].rest()) == EVERY_ROW
        eventually(lambda: metric(made.url, "lastword_row_streams") == 0)
        assert metric(made.url, "lastword_row_streams_cut_total") == 0
    # RocksDB opens no store of which a snapshot is left.
    Store(folder, readable=lambda _: True).close()


def test_a_client_that_reads_nothing_for_too_long_is_cut_off(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path, stall_s=0.5) as made, SlowReader(made.url) as reader:
        eventually(lambda: metric(made.url, 'lastword_row_streams_cut_total{reason="stalled"}') == 1)
        assert is_cut(reader)
        assert metric(made.url, "lastword_row_streams") == 0


def test_a_large_row_waits_until_there_is_room_for_it_among_the_unsent_answers(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"max.message.bytes": "8000000"})
    small = [value_of(number) for number in range(100)]
    with (
        Table(connection, topic_name) as table,
        served(connection, topic_name, tmp_path, unsent_bytes=4_500_000) as made,
    ):
        table.put_many((f"key-{number:05}", value) for number, value in enumerate(small))
        position = table.put("large", "x" * 3_000_000).position
        # While one client has the row and reads nothing of it, there is no room for a second one.
        with SlowReader(made.url, f"/tables/users/rows/large?min_position={position}") as idle:
            assert idle.answer.status == 200
            with SlowReader(made.url) as reader, SlowReader(made.url, "/tables/users/rows/large") as refused:
                assert (reader.answer.status, refused.answer.status) == (200, 503)
                begun = reader.answer.read(sum(len(json.dumps(value)) for value in small[:50]))
                assert metric(made.url, "lastword_row_streams") == 1
                idle.close()
                assert json.loads(begun + reader.rest()) == [*small, "x" * 3_000_000]


def test_rows_that_are_kept_in_memory_for_slow_clients_are_bounded_too(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path, unsent_bytes=4 * 1024 * 1024) as made:
        replica = made.tables[0].replica
        with SlowReader(made.url) as reader:
            # All rows are on the disk now. Those in memory are kept for the reader alone.
            store_of(replica).flush()
            eventually(lambda: metric(made.url, "lastword_row_streams") == 0)
            assert metric(made.url, "lastword_row_streams_cut_total") == 1
            assert store_of(replica).rows.pinned_bytes == 0
            assert is_cut(reader)


def test_a_store_that_is_replaced_ends_the_answers_that_are_made_of_it(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path) as made, SlowReader(made.url) as reader:
        assert reader.answer.status == 200
        recreate(connection, filled.topic, [(0, "a", "1")])
        eventually(lambda: metric(made.url, "lastword_row_streams") == 0, within_s=60)
        assert is_cut(reader)
        # The table may be ready before the row of the new topic is written.
        eventually(lambda: metric(made.url, "lastword_rows") == 1)
        with SlowReader(made.url) as after:
            assert json.loads(after.rest()) == [1]


def test_a_stop_waits_for_no_reader_and_leaves_no_answer_that_looks_whole(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    with served(connection, filled.topic, tmp_path) as made:
        folder = store_of(made.tables[0].replica).folder
        with SlowReader(made.url) as reader:
            began = time.monotonic()
            # Whether all requests under way had ended in time.
            assert made.server.stop()
            assert time.monotonic() - began < Limits().stall_s / 2
            assert is_cut(reader)
    Store(folder, readable=lambda _: True).close()
