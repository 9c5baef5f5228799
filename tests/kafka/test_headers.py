"""Rows keep the headers of their records: in a replica, over HTTP, in changes, and from a dump to a load."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.core.errors import BadInput
from lastword.core.record import Headers
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import ReadQueue, log_bounds, read_columns
from lastword.kafka.topics.topic_changes import create_topic
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.command_line import CommandLine
from support.generated_logs import Act, Put, write_log
from support.replicas import disagreements, log_now, replica_of, wait_until_caught_up
from support.service_calls import ask, served_table, service_of

with warnings.catch_warnings():
    # kafka-python loads its schemas in a way that Python 3.11 alone calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

# Names come twice, and values are text, nothing, null, or no text.
HEADERS: Headers = (("trace", b"x"), ("schema", b"\x00\x00\x00\x00\xff"), ("trace", None), ("empty", b""))
IN_JSON = [["trace", "x"], ["schema", {"base64": "AAAAAP8="}], ["trace", None], ["empty", ""]]


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=2)
    return topic_name


@pytest.fixture
def users(connection: Connection, topic: str) -> Table:
    return Table(connection, topic)


@pytest.fixture
def server(connection: Connection, topic: str, tmp_path: Path) -> Iterator[Running]:
    with running(connection, [TableToServe.parse(f"users={topic},short=true")], tmp_path, Front(port=0)) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made


def test_a_replica_shows_the_headers_of_rows_that_it_read_and_of_those_that_it_found_on_disk(
    users: Table, tmp_path: Path
) -> None:
    users.put("before", {"n": 1}, HEADERS)
    users.put("plain", {"n": 2})
    with users.replica(tmp_path) as replica:
        replica.wait_for(users.put("followed", {"n": 3}, HEADERS))
        shown = {row.key: row.headers for row in replica.scan()}
        assert shown == {"before": HEADERS, "followed": HEADERS, "plain": ()}
    with users.replica(tmp_path) as replica:
        assert {row.key: row.headers for row in replica.scan()} == shown
        # The same value with other headers, and without any.
        replica.wait_for(users.put("before", {"n": 1}, {"trace": "y"}))
        replica.wait_for(users.put("followed", {"n": 3}))
        assert [row.headers for row in replica.scan()] == [(("trace", b"y"),), (), ()]


def test_a_key_in_two_partitions_shows_the_headers_of_the_row_that_it_shows(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    def put(partition: int, value: bytes | None, name: str) -> list[Act]:
        return [Act(puts=(Put(key=b"a", value=value, partition=partition, headers=((name, b"1"),)),), ending="plain")]

    committed = write_log(connection, topic, put(0, b"1", "first"))
    with replica_of(connection, topic, tmp_path) as replica, replica.watch() as watch:
        committed += write_log(connection, topic, put(1, b"\xff", "second"))
        committed += write_log(connection, topic, put(1, None, "third"))
        wait_until_caught_up(connection, replica)
        assert [watch.poll(30).headers[0][0] for _ in range(2)] == ["second", "first"]  # type: ignore[union-attr]
        assert disagreements(replica, committed) == []


def test_a_row_over_http_has_its_headers_and_one_without_has_no_such_field(
    connection: Connection, topic: str, users: Table, tmp_path: Path
) -> None:
    users.put("a", {"n": 1}, HEADERS)
    Table(connection, topic, value="bytes").put("damaged", b"{", HEADERS)
    plain = users.put("plain", 2)
    table = served_table(connection, topic, tmp_path)
    with table.replica:
        service = service_of(table)
        told = ask(service, "/tables/users/rows/a")
        assert (told.json["value"], told.json["headers"]) == ({"n": 1}, IN_JSON)
        place = (plain.partition, plain.offset, plain.timestamp)
        assert ask(service, "/tables/users/rows/plain").body == (
            b'{"key":"plain","value":2,"partition":%d,"offset":%d,"timestamp":%d}' % place
        )
        rows = {row["key"]: row for row in ask(service, "/tables/users/rows").json["rows"]}
        assert {key: row.get("headers") for key, row in rows.items()} == {
            "a": IN_JSON,
            "damaged": IN_JSON,
            "plain": None,
        }
        assert (rows["damaged"]["value_base64"], "value" in rows["damaged"]) == ("ew==", False)
        assert ask(service, "/users/a").body == b'{"n":1}'


def test_changes_have_headers_as_they_come_and_when_they_are_read_again(users: Table, server: Running) -> None:
    def told(reader: ChangeReader) -> list[tuple[str, object]]:
        return [(event.name, event.content.get("headers")) for event in reader.take(3, timeout_s=60)]

    with closing(ChangeReader(server.url, "/tables/users/changes")) as reader:
        begin = reader.headers["x-lastword-position"]
        users.put("a", 1, HEADERS)
        users.put("a", 2)
        users.delete("a", HEADERS)
        expected = [("put", IN_JSON), ("put", None), ("delete", IN_JSON)]
        assert told(reader) == expected
    with closing(ChangeReader(server.url, f"/tables/users/changes?after={begin}")) as again:
        assert told(again) == expected


def test_what_is_dumped_is_loaded_and_posted_with_the_same_headers(
    connection: Connection, lastword: CommandLine, topic: str, users: Table, server: Running
) -> None:
    users.put("a", 1, HEADERS)
    dumped = lastword("dump", topic)
    assert json.loads(dumped) == {"key": "a", "value": 1, "headers": IN_JSON}
    lastword("load", topic, "-", given=dumped)
    posted = ask(service_of(server.tables[0]), "/tables/users/rows", "POST", dumped.encode())
    assert (posted.status, posted.json["written"]) == (200, 1)
    assert [record.headers for record in log_now(connection, topic)] == [HEADERS] * 3


def test_a_header_name_that_would_be_cut_is_refused(users: Table, server: Running) -> None:
    with pytest.raises(BadInput, match="null character"):
        users.put("a", 1, {"a\0b": "x"})
    line = b'{"key":"a","value":1,"headers":[["a\\u0000b","x"]]}'
    told = ask(service_of(server.tables[0]), "/tables/users/rows", "POST", line)
    assert (told.status, told.code) == (400, "bad_line")
    assert users.count() == 0


class _Damaged(str):
    """A name that a client of another language may have written."""

    def encode(self, *_: object) -> bytes:
        return b"\xff\xfe"


@pytest.mark.open
def test_a_header_name_that_is_not_utf8_costs_neither_the_row_nor_the_other_headers(
    connection: Connection, topic: str, users: Table, tmp_path: Path
) -> None:
    def send(key: bytes) -> None:
        headers = [("first", b"1"), (_Damaged("x"), b"2"), ("last", b"3")]
        for number in range(3):
            producer.send(topic, key=key + b"%d" % number, value=b"1", headers=headers if number == 1 else []).get(30)

    expected: Headers = (("first", b"1"), ("\ufffd", b"2"), ("last", b"3"))
    with closing(KafkaProducer(bootstrap_servers=connection.bootstrap_servers)) as producer:
        send(b"before")
        with users.replica(tmp_path) as replica:
            send(b"followed")
            wait_until_caught_up(connection, replica)
            shown = {row.key: row.headers for row in replica.scan() if row.headers}
    assert shown == {"before1": expected, "followed1": expected}
    assert {row.key: row.headers for row in users.scan() if row.headers} == shown
    start, stop = log_bounds(connection, topic)
    columns = [
        each for batch in read_columns(connection, topic, start=start, stop=stop, queue=ReadQueue()) for each in batch
    ]
    found = {key: headers for each in columns for key, headers in zip(each.keys, each.headers or (), strict=False)}
    assert {key: headers for key, headers in found.items() if headers} == {b"before1": expected, b"followed1": expected}
