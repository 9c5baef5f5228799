"""Running the service: tokens over real sockets, metrics, the access log, compression."""

from __future__ import annotations

import gzip
import http.client
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.serve.http.access_log import AccessLog
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.waiting import eventually

ALL = "0.0.0.0"  # noqa: S104
READ, WRITE = "read-0123456789abcdef", "write-0123456789abcdef"


@pytest.fixture(scope="module")
def written(connection: Connection) -> str:
    topic = "operating"
    create_topic(connection, topic, partitions=3)
    with Table(connection, topic) as table:
        table.put_many([(f"secret-key-{number:03}", {"n": number, "text": "x" * 100}) for number in range(100)])
        table.put("long", "y" * 20_000)
    return topic


@pytest.fixture
def served(connection: Connection, written: str, tmp_path: Path) -> Iterator[Running]:
    with running(connection, [TableToServe.parse(f"users={written},short=true")], tmp_path, Front(port=0)) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made


def get(
    served: Running, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    asking = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    try:
        spelt = {name.replace("_", "-"): text for name, text in headers.items()}
        asking.request(method, path, body=body, headers=spelt)
        told = asking.getresponse()
        return told.status, {name.lower(): text for name, text in told.getheaders()}, told.read()
    finally:
        asking.close()


def test_with_tokens_reads_and_writes_are_apart_and_health_is_open(
    connection: Connection, written: str, tmp_path: Path
) -> None:
    tokens = Tokens(reading=[READ], writing=[WRITE])
    front = Front(port=0, host=ALL, tokens=tokens)
    with running(connection, [TableToServe.parse(f"users={written},short=true")], tmp_path, front) as made:
        made.tables[0].replica.wait_until_ready(120)
        served = replace(made, url=made.url.replace(ALL, "127.0.0.1"))
        for path in ("/tables", "/tables/users/rows/long", "/users", "/metrics", "/tables/users/changes", "/changes"):
            status, headers, body = get(served, path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer"), path
            assert b"users" not in body
            assert get(served, path, "HEAD", authorization=f"Bearer {READ}")[0] == 200, path
        assert [get(served, path)[0] for path in ("/health", "/ready")] == [200, 200]
        put = "/tables/users/rows/new"
        assert [get(served, put, "PUT", b"1", authorization=f"Bearer {token}")[0] for token in (READ, WRITE, "x")] == [
            403,
            200,
            401,
        ]
        # Asked for by whatever name it has in that network.
        assert get(served, "/tables", host="tables.example", authorization=f"Bearer {READ}")[0] == 200
        with_token = ChangeReader(served.url, "/tables/users/changes", authorization=f"Bearer {READ}")
        assert with_token.status == 200
        with_token.close()


def test_metrics_say_how_tables_stand_and_how_requests_went_without_a_key(
    connection: Connection, written: str, served: Running
) -> None:
    for _ in range(3):
        assert get(served, "/tables/users/rows/secret-key-001")[0] == 200
    assert get(served, "/tables/users/rows/nobody")[0] == 404
    assert get(served, "/secret-path")[0] == 404
    assert get(served, "/tables", "BREW")[0] == 405
    stream = ChangeReader(served.url, "/tables/users/changes")
    status, headers, body = get(served, "/metrics")
    stream.close()
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert b"secret" not in body
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    of_users = ("table", "users")
    replica = served.tables[0].replica
    assert found["lastword_ready", of_users] == 1
    assert found["lastword_rows", of_users] == len(replica)
    assert found["lastword_lag_offsets", of_users] == 0
    for partition, offset in replica.position.items():
        assert found["lastword_position", ("partition", str(partition)), of_users] == offset
    assert found["lastword_applied_records_total", of_users] >= len(replica)
    row = ("method", "GET"), ("route", "row")
    assert found["lastword_requests_total", *row, ("status", "200")] == 3
    assert found["lastword_requests_total", *row, ("status", "404")] == 1
    assert found["lastword_requests_total", ("method", "GET"), ("route", "nowhere"), ("status", "404")] == 1
    assert found["lastword_requests_total", ("method", "other"), ("route", "tables"), ("status", "405")] == 1
    assert found["lastword_request_seconds_count", ("route", "row")] == 4
    assert found["lastword_request_seconds_bucket", ("le", "+Inf"), ("route", "row")] == 4
    assert found["lastword_streams",] == 1
    assert found["process_resident_memory_bytes",] > 0


def test_long_answers_are_compressed_for_those_who_take_it(served: Running) -> None:
    for path in ("/tables/users/rows/long", "/users"):
        _, plain_headers, plain = get(served, path)
        assert "content-encoding" not in plain_headers
        assert plain_headers["vary"] == "accept-encoding"
        status, headers, body = get(served, path, accept_encoding="br, gzip;q=0.5")
        assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "accept-encoding")
        assert gzip.decompress(body) == plain
        assert len(body) < len(plain) / 3
    _, headers, _ = get(served, "/tables/users/rows/long", accept_encoding="gzip")
    assert headers["etag"].startswith('W/"')
    assert get(served, "/tables/users/rows/long", if_none_match=headers["etag"])[0] == 304
    for accepted in ("gzip;q=0", "gzip;q=0.000, br", "identity", ""):
        assert "content-encoding" not in get(served, "/users", accept_encoding=accepted)[1]
    assert "content-encoding" not in get(served, "/tables/users/rows/secret-key-001", accept_encoding="gzip")[1]


def test_each_request_has_a_line_in_the_access_log(connection: Connection, written: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    access = AccessLog(out)
    with running(
        connection, [TableToServe.parse(f"users={written},short=true")], tmp_path, Front(port=0, access=access)
    ) as served:
        served.tables[0].replica.wait_until_ready(120)
        _, _, body = get(served, "/tables/users/rows/long")
        get(served, "/tables/users/rows/%0Anew%22line", authorization=f"Bearer {READ}")
        reader = ChangeReader(served.url, "/tables/users/changes")
        reader.close()
        eventually(lambda: out.getvalue().count(b"\n") == 3)
    access.close()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/tables/users/rows/long", 200),
        ("GET", '/tables/users/rows/\nnew"line', 404),
        ("GET", "/tables/users/changes", 200),
    ]
    assert lines[0]["bytes"] == len(body)
    assert lines[0]["client"].startswith("127.0.0.1:")
    assert READ.encode() not in out.getvalue()
