"""The point read over HTTP: rows of a real topic through the service, without a server between."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.kafka.topics.topic_snapshot import TopicProbe
from lastword.serve.tables.served_table import ServedTable
from support.service_calls import answer_to, ask, in_two, request_of, served_table, service_of
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


@pytest.fixture
def users(connection: Connection, topic: str, tmp_path: Path) -> Iterator[ServedTable]:
    table = served_table(connection, topic, tmp_path / "replica")
    with table.replica:
        yield table


def test_a_row_is_answered_with_its_place_and_the_position(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    ack = Table(connection, topic).put("user/1", {"name": "Åsa"})
    told = ask(service_of(users), f"/tables/users/rows/user%2F1?min_position={ack.position}")
    topic_id = TopicProbe(connection, topic).look().topic_id
    assert (told.status, told.json) == (
        200,
        {
            "key": "user/1",
            "value": {"name": "Åsa"},
            "partition": ack.partition,
            "offset": ack.offset,
            "timestamp": ack.timestamp,
        },
    )
    assert told.headers["content-type"] == "application/json"
    assert told.headers["etag"] == f'"{topic_id[:8]}-{ack.partition}-{ack.offset}"'
    assert told.headers["x-lastword-position"] == str(users.replica.position)


def test_json_is_answered_as_the_bytes_it_was(connection: Connection, topic: str, users: ServedTable) -> None:
    raw = b'{"n": 1.10000000000000000001,\n "n": 1e40}'
    ack = Table(connection, topic, value="bytes").put("a", raw)
    told = ask(service_of(users), f"/tables/users/rows/a?min_position={ack.position}")
    assert b'"value":' + raw in told.body


def test_a_value_that_is_not_json_is_answered_as_base64_with_the_reason(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    ack = Table(connection, topic, value="bytes").put("a", b"\xff")
    told = ask(service_of(users), f"/tables/users/rows/a?min_position={ack.position}")
    assert told.status == 200
    assert told.json["value_base64"] == "/w=="
    assert told.json["decode_error"].startswith("not JSON")
    assert (told.json["partition"], told.json["offset"]) == (ack.partition, ack.offset)


def test_keys_of_bytes_are_base64url_in_the_address_and_values_go_through_their_codec(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    ack = Table(connection, topic, key="bytes", value="int").put(b"\xff\xfe\xfd\x00", 7)
    table = served_table(connection, topic, tmp_path / "replica", name="raw", key="bytes", value="int")
    with table.replica:
        told = ask(service_of(table), "/tables/raw/rows/__79AA")
    assert (told.json["key"], told.json["value"], told.json["offset"]) == ("//79AA==", 7, ack.offset)


def test_a_key_that_its_codec_can_not_read_is_answered_as_base64(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    ack = Table(connection, topic, key="bytes").put(b"\0\0\0\0\1x", 1)
    told = ask(service_of(users), f"/tables/users/rows/%00%00%00%00%01x?min_position={ack.position}")
    assert (told.json["key_base64"], told.json["value"]) == ("AAAAAAF4", 1)
    assert told.json["decode_error"].startswith("schema registry frame")


def test_what_the_asker_has_already_is_not_sent_again_until_it_changes(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    table, service = Table(connection, topic), service_of(users)
    first = table.put("a", 1)
    tag = ask(service, f"/tables/users/rows/a?min_position={first.position}").headers["etag"]
    for condition in (tag, f'"x", W/{tag}', "*"):
        told = ask(service, "/tables/users/rows/a", if_none_match=condition)
        assert (told.status, told.body, told.headers["etag"]) == (304, b"", tag)
    assert ask(service, "/tables/users/rows/a", if_none_match='"x", y').status == 200
    second = table.put("a", 1)
    told = ask(service, f"/tables/users/rows/a?min_position={second.position}", if_none_match=tag)
    assert (told.status, told.headers["etag"] != tag) == (200, True)


def test_a_key_that_is_not_there_or_was_deleted_is_not_found(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    table, service = Table(connection, topic), service_of(users)
    table.put("a", None)
    ack = table.delete("a")
    for key in ("a", "b"):
        told = ask(service, f"/tables/users/rows/{key}?min_position={ack.position}", if_none_match="*")
        assert (told.status, told.code) == (404, "key_not_found")
        assert told.headers["x-lastword-position"] == str(users.replica.position)


def test_a_read_waits_for_a_position_that_comes_in_time(connection: Connection, topic: str, users: ServedTable) -> None:
    table, service = Table(connection, topic), service_of(users)
    first = table.put("a", 1)
    later = threading.Timer(0.3, lambda: table.put("a", 2))
    later.start()
    told = ask(service, f"/tables/users/rows/a?min_position={first.partition}:{first.offset + 2}")
    later.join()
    assert told.json["value"] == 2


def test_a_position_that_does_not_come_in_time_is_said_to_be_not_reached(users: ServedTable) -> None:
    began = time.monotonic()
    told = ask(service_of(users, wait_s=0.2), "/tables/users/rows/a?min_position=0:1000")
    assert (told.status, told.code) == (504, "position_not_reached")
    assert 0.2 <= time.monotonic() - began < 2


def test_only_so_many_reads_may_wait(users: ServedTable) -> None:
    service = service_of(users, wait_s=0.3, waiting_reads=2)

    async def three() -> list[int]:
        request = request_of("GET", "/tables/users/rows/a", "min_position=0:1000", {}, in_two(b""))
        return sorted(
            answer.status for answer in await asyncio.gather(*(answer_to(service, request) for _ in range(3)))
        )

    assert asyncio.run(three()) == [503, 504, 504]
    # Those that waited make room again.
    assert asyncio.run(three()) == [503, 504, 504]


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/tables/users/rows/a?min_position=x", 400, "bad_position"),
        ("/tables/users/rows/a?min_postion=0:1", 400, "bad_query"),
        ("/tables/users/rows/", 400, "bad_key"),
        ("/tables/users/rows/%ff", 400, "bad_path"),
        ("/tables/nobody/rows/a", 404, "no_such_table"),
        ("/tables/users/rows/" + "k" * 4097, 414, "key_too_long"),
    ],
)
def test_what_can_not_be_answered_is_refused_in_the_one_shape(
    users: ServedTable, address: str, status: int, code: str
) -> None:
    told = ask(service_of(users), address)
    assert (told.status, told.code, sorted(told.json["error"])) == (status, code, ["code", "hint", "message"])


def test_a_table_with_nothing_to_show_is_not_ready(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    table = served_table(connection, topic_name, tmp_path / "replica", wait=False)
    with table.replica:
        # The topic does not exist.
        eventually(lambda: table.replica.state.why is not None)
        told = ask(service_of(table), "/tables/users/rows/a")
    assert (told.status, told.code) == (503, "not_ready")
    assert str(tmp_path) not in told.body.decode()


def test_a_closed_replica_answers_that_it_is_not_ready(users: ServedTable) -> None:
    users.replica.close()
    assert ask(service_of(users), "/tables/users/rows/a").code == "not_ready"
