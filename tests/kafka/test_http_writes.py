"""Writes over HTTP: through Kafka, acknowledged with their place, and read again at that position."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.processes.ports import PortPicker
from lastword.serve.running import Front, TableToServe, running
from lastword.serve.tables.served_table import ServedTable
from lastword.serve.tables.writes import Writes
from support.replicas import log_now
from support.service_calls import ServiceAnswer, answer_to, ask, in_two, request_of, served_table, service_of


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3, settings={"max.message.bytes": "20000"})
    return topic_name


@pytest.fixture
def users(connection: Connection, topic: str, tmp_path: Path) -> Iterator[ServedTable]:
    table = served_table(connection, topic, tmp_path / "replica")
    with table.replica:
        yield table
        table.writes.close(5)


def put(users: ServedTable, key: str, body: bytes, **headers: str) -> ServiceAnswer:
    return ask(service_of(users), f"/tables/users/rows/{key}", "PUT", body, **headers)


def test_a_put_is_acknowledged_with_its_place_and_read_at_its_position(users: ServedTable) -> None:
    told = put(users, "a%2Fb", b' {"n": 1.10} ')
    assert (told.status, sorted(told.json)) == (200, ["offset", "partition", "position"])
    assert told.json["position"] == f"{told.json['partition']}:{told.json['offset'] + 1}"
    read = ask(service_of(users), f"/tables/users/rows/a%2Fb?min_position={told.json['position']}")
    assert b'"value":{"n": 1.10},' in read.body
    assert (read.json["partition"], read.json["offset"]) == (told.json["partition"], told.json["offset"])


def test_a_delete_writes_a_tombstone_and_json_null_does_not(connection: Connection, users: ServedTable) -> None:
    service, address = service_of(users), "/tables/users/rows/a"
    null = ask(service, address, "PUT", b"null")
    assert ask(service, f"{address}?min_position={null.json['position']}").json["value"] is None
    gone = ask(service, address, "DELETE")
    assert ask(service, f"{address}?min_position={gone.json['position']}").code == "key_not_found"
    assert [record.value for record in log_now(connection, users.replica.topic)] == [b"null", None]


def test_lines_are_written_together_and_answered_with_a_position_that_covers_them(users: ServedTable) -> None:
    service = service_of(users)
    lines = [json.dumps({"key": f"k{number}", "value": number}).encode() for number in range(100)]
    lines += [b"", b'{"key":"k0","tombstone":true}', b'{"key":"k1","value":"new"}']
    told = ask(service, "/tables/users/rows", "POST", b"\n".join(lines) + b"\n")
    assert (told.status, told.json["written"]) == (200, 102)
    assert told.json["position"].count(":") == 3
    rows = ask(service, f"/tables/users/rows?min_position={told.json['position']}").json["rows"]
    assert [row for row in rows if "value" not in row] == []
    assert {row["key"]: row["value"] for row in rows} == {f"k{n}": n for n in range(2, 100)} | {"k1": "new"}


def test_a_mistake_in_a_line_is_named_and_nothing_is_written(connection: Connection, users: ServedTable) -> None:
    told = ask(service_of(users), "/tables/users/rows", "POST", b'{"key":"a","value":1}\n\n{"key":"b"}')
    assert (told.status, told.code) == (400, "bad_line")
    assert told.json["error"]["message"].startswith("line 3: ")
    assert log_now(connection, users.replica.topic) == []


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"1 2", b'"\xff"'])
def test_a_body_that_is_not_json_is_refused(users: ServedTable, body: bytes) -> None:
    told = put(users, "a", body)
    assert (told.status, told.code) == (400, "bad_value")


def test_values_of_other_codecs_are_sent_as_the_json_in_which_they_are_shown(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    table = served_table(connection, topic, tmp_path / "replica", key="bytes", value="int")
    with table.replica:
        told = ask(service_of(table), "/tables/users/rows/_w", "PUT", b"7")
        assert ask(service_of(table), "/tables/users/rows/_w", "PUT", b'"7"').code == "bad_value"
        table.writes.close(5)
    assert told.status == 200
    assert [(record.key, record.value) for record in log_now(connection, topic)] == [(b"\xff", bytes(7) + b"\x07")]


def test_the_reserved_key_is_refused(users: ServedTable) -> None:
    line = b'{"key":"__lastword_nudge","value":1}'
    for told in (put(users, "__lastword_nudge", b"1"), ask(service_of(users), "/tables/users/rows", "POST", line)):
        assert (told.status, told.code) == (400, "bad_key")


def test_a_value_that_the_topic_does_not_take_is_too_large_and_others_with_it_are_written(users: ServedTable) -> None:
    # No pattern in it, or compression would make it small.
    large = json.dumps([hash((number, "x")) for number in range(3000)])
    told = put(users, "a", large.encode())
    assert (told.status, told.code) == (413, "value_too_large")
    lines = f'{{"key":"b","value":1}}\n{{"key":"c","value":{large}}}'.encode()
    told = ask(service_of(users), "/tables/users/rows", "POST", lines)
    assert (told.status, told.json["error"]["message"].partition(":")[0]) == (413, "1 of 2 writes were acknowledged")


def test_a_body_is_limited_in_size_and_time(users: ServedTable) -> None:
    told = ask(service_of(users, body_bytes=10), "/tables/users/rows/a", "PUT", b'"123456789"')
    assert (told.status, told.code) == (413, "body_too_large")

    async def never() -> AsyncIterator[bytes]:
        yield b"1"
        await asyncio.sleep(60)

    request = request_of("PUT", "/tables/users/rows/a", "", {}, never())
    assert asyncio.run(answer_to(service_of(users, body_s=0.1), request)).status == 408


def test_a_page_of_another_site_may_not_write(users: ServedTable) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        told = put(users, "a", b"1", origin=origin, host="localhost:8090")
        assert (told.status, told.code) == (403, "cross_origin")
    assert put(users, "a", b"1", origin="http://localhost:8090", host="localhost:8090").status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_page_of_another_site_may_not_write_where_its_browser_sends_no_origin(
    users: ServedTable, method: str
) -> None:
    def status(site: str) -> int:
        return ask(service_of(users), "/tables/users/rows/a", method, b"1", **{"sec-fetch-site": site}).status

    assert {site: status(site) for site in ("cross-site", "same-site", "same-origin", "none", "strange")} == {
        "cross-site": 403,
        "same-site": 403,
        "same-origin": 200,
        "none": 200,
        "strange": 403,
    }


def test_a_write_takes_no_parameters(users: ServedTable) -> None:
    told = ask(service_of(users), "/tables/users/rows/a?min_position=0:1", "PUT", b"1")
    assert (told.status, told.code) == (400, "bad_query")


def test_many_writes_at_once_are_each_told_their_own_place(connection: Connection, users: ServedTable) -> None:
    service = service_of(users)

    async def all_of_them() -> list[tuple[int, int]]:
        requests = [
            request_of("PUT", f"/tables/users/rows/k{number}", "", {}, in_two(b"%d" % number)) for number in range(300)
        ]
        answers = await asyncio.gather(*(answer_to(service, each) for each in requests))
        told = [json.loads(answer.body) for answer in answers]
        return [(each["partition"], each["offset"]) for each in told]

    places = asyncio.run(all_of_them())
    written = {(record.partition, record.offset): record.value for record in log_now(connection, users.replica.topic)}
    assert [written[place] for place in places] == [b"%d" % number for number in range(300)]


def test_without_a_cluster_a_write_is_not_acknowledged_and_says_nothing_of_addresses(
    connection: Connection, users: ServedTable
) -> None:
    with PortPicker() as picker:
        port = picker.free()
    nowhere = Connection(bootstrap_servers=f"127.0.0.1:{port}", patience_s=0.5)
    away = users._replace(writes=Writes(nowhere, users.replica.topic, waiting=10))
    told = put(away, "a", b"1")
    assert (told.status, told.code) == (503, "cluster_unreachable")
    assert str(port) not in told.body.decode()
    away.writes.close(5)


def test_more_writes_than_may_wait_are_refused(users: ServedTable) -> None:
    with PortPicker() as silent:
        # Connections are taken there, and nothing is ever answered.
        nowhere = Connection(bootstrap_servers=f"127.0.0.1:{silent.free()}", patience_s=2)
        away = users._replace(writes=Writes(nowhere, users.replica.topic, waiting=2))
        service = service_of(away)

        async def three() -> list[str]:
            asked = []
            for _ in range(3):
                request = request_of("PUT", "/tables/users/rows/a", "", {}, in_two(b"1"))
                asked.append(asyncio.create_task(answer_to(service, request)))
                # Two may wait for the cluster.
                await asyncio.sleep(0.2)
            return [json.loads((await each).body)["error"]["code"] for each in asked]

        assert asyncio.run(three()) == ["cluster_unreachable", "cluster_unreachable", "too_many_writes"]
        away.writes.close(5)


def test_rows_are_written_over_real_sockets(connection: Connection, topic: str, tmp_path: Path) -> None:
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0)) as made:
        asking = http.client.HTTPConnection(made.url.removeprefix("http://"), timeout=60)
        positions = []
        for method, path, body in (
            ("PUT", "/tables/users/rows/a", b'{"n":1}'),
            ("POST", "/tables/users/rows", b'{"key":"b","value":2}\n' * 1000),
            ("DELETE", "/tables/users/rows/a", None),
        ):
            asking.request(method, path, body)
            told = asking.getresponse()
            assert told.status == 200
            positions.append(json.loads(told.read())["position"])
        asking.request("PUT", "/tables/users/rows/a", b"x" * (9 * 1024 * 1024))
        told = asking.getresponse()
        assert (told.status, json.loads(told.read())["error"]["code"]) == (413, "body_too_large")
        asking.close()
        for position in positions:
            made.tables[0].replica.wait_for(position)
        assert dict(made.tables[0].replica) == {"b": 2}
    assert Table(connection, topic).count() == 1


@pytest.mark.parametrize("header", ["if_match", "if_none_match", "if_unmodified_since"])
def test_a_write_that_is_to_be_conditional_is_refused_and_not_made(
    connection: Connection, users: ServedTable, header: str
) -> None:
    told = put(users, "a", b"1", **{header: "*"})
    assert (told.status, told.code) == (400, "not_conditional")
    assert log_now(connection, users.replica.topic) == []


@pytest.mark.parametrize("value", [b"1e999", b"[1e400]", b"-1e309"])
def test_a_number_that_nobody_could_read_back_is_refused(
    connection: Connection, users: ServedTable, value: bytes
) -> None:
    told = put(users, "a", value)
    assert (told.status, told.code) == (400, "bad_value")
    assert log_now(connection, users.replica.topic) == []


def test_a_key_that_could_not_be_asked_for_is_not_written_in_a_line_either(users: ServedTable) -> None:
    line = b'{"key":"%b","value":1}' % (b"k" * 5000)
    told = ask(service_of(users), "/tables/users/rows", "POST", line)
    assert (told.status, told.code) == (414, "key_too_long")


def test_a_key_that_its_codec_cannot_read_back_is_refused_and_can_be_deleted(
    connection: Connection, users: ServedTable
) -> None:
    told = put(users, "%00abcd", b"1")
    assert (told.status, told.code) == (400, "bad_key")
    assert "the string codec can't read this key back" in told.json["error"]["message"]
    told = ask(service_of(users), "/tables/users/rows", "POST", rb'{"key":"\u0000abcd","value":1}')
    assert (told.status, told.code) == (400, "bad_line")
    assert log_now(connection, users.replica.topic) == []
    assert ask(service_of(users), "/tables/users/rows/%00abcd", "DELETE").status == 200


def test_bodies_together_take_no_more_than_is_allowed(users: ServedTable) -> None:
    service = service_of(users, waiting_bytes=1000)
    assert ask(service, "/tables/users/rows/a", "PUT", b'"%b"' % (b"x" * 2000)).code == "too_many_writes"
    # What was refused, and what was written, makes room again.
    for _ in range(5):
        assert ask(service, "/tables/users/rows/a", "PUT", b'"%b"' % (b"x" * 600)).status == 200


def test_a_stop_does_not_wait_for_a_cluster_that_is_away(users: ServedTable) -> None:
    nowhere = Connection(bootstrap_servers="127.0.0.1:1")
    writes = Writes(nowhere, users.replica.topic, waiting=10)
    service = service_of(users._replace(writes=writes))

    async def two() -> list[int]:
        asked = [
            asyncio.create_task(answer_to(service, request_of("PUT", "/tables/users/rows/a", "", {}, in_two(b"1"))))
            for _ in range(2)
        ]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(writes.close, 1)
        return [(await each).status for each in asked]

    began = time.monotonic()
    assert asyncio.run(two()) == [503, 503]
    assert time.monotonic() - began < 20
