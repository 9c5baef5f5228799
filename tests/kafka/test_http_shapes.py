"""What is sent is what core.shapes declares, also where the answer is put together from bytes of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

from lastword.core.shapes.cluster import ClusterAnswer
from lastword.core.shapes.errors import ErrorAnswer, ShortErrorAnswer
from lastword.core.shapes.rows import CountAnswer, SentDelete, SentPage, SentPut, SentRow, WriteAnswer, WritesAnswer
from lastword.core.shapes.tables import HealthAnswer, ReadyAnswer, TablesAnswer, TableStatus
from lastword.core.shapes.topics import TopicAnswer
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.strict_shapes import as_shape
from support.waiting import eventually

TOPIC = "test-shapes"
LINES = rb"""
{"key": "plain", "value": {"n": 1}}
{"key": "headed", "value": null, "headers": [["trace", "x"], ["schema", {"base64": "AAAAAP8="}], ["none", null]]}
{"key": "poison", "value_base64": "/w=="}
{"key_base64": "/w==", "value": 1}
"""


@pytest.fixture(scope="module")
def served(connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    create_topic(connection, TOPIC, partitions=2)
    with running(
        connection, [TableToServe.parse(f"users={TOPIC},short=true")], tmp_path_factory.mktemp("shapes"), Front(port=0)
    ) as made:
        made.tables[0].replica.wait_until_ready(120)
        written = as_shape(sent(made, "/tables/users/rows", "POST", LINES), WritesAnswer)
        assert written.written == 4
        made.tables[0].replica.wait_for(written.position)
        eventually(lambda: b'"connected"' in sent(made, "/cluster"))
        yield made
    delete_topic(connection, TOPIC)


def sent(served: Running, path: str, method: str = "GET", body: bytes | None = None) -> bytes:
    try:
        with urlopen(Request(served.url + path, body, method=method), timeout=60) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content
    except HTTPError as refused:
        return refused.read()


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/health", HealthAnswer),
        ("/ready", ReadyAnswer),
        ("/tables", TablesAnswer),
        ("/tables/users", TableStatus),
        ("/tables/users/count", CountAnswer),
        ("/users/count", CountAnswer),
        ("/tables/users/rows", SentPage),
        ("/tables/users/rows?limit=1", SentPage),
        ("/tables/users/rows/plain", SentRow),
        ("/tables/users/rows/headed", SentRow),
        ("/tables/users/rows/poison", SentRow),
        ("/users/poison", SentRow),
        ("/cluster", ClusterAnswer),
        (f"/topics/{TOPIC}", TopicAnswer),
        ("/tables/users/rows/none", ErrorAnswer),
        ("/users/none", ShortErrorAnswer),
    ],
)
def test_an_answer_is_of_its_shape(served: Running, path: str, shape: type[msgspec.Struct]) -> None:
    as_shape(sent(served, path), shape)


def test_a_write_and_its_changes_are_of_their_shapes(served: Running) -> None:
    with (
        closing(ChangeReader(served.url, "/tables/users/changes")) as one,
        closing(ChangeReader(served.url, "/changes?tables=users")) as several,
    ):
        as_shape(sent(served, "/tables/users/rows/new", "PUT", b"[1]"), WriteAnswer)
        as_shape(sent(served, "/tables/users/rows/new", "DELETE"), WriteAnswer)
        for reader in (one, several):
            put, delete = reader.take(2)
            row = as_shape(json.dumps(put.content).encode(), SentPut)
            gone = as_shape(json.dumps(delete.content).encode(), SentDelete)
            tables = ("users", "users") if reader is several else (msgspec.UNSET, msgspec.UNSET)
            assert (row.table, gone.table) == tables


def test_a_field_that_a_shape_does_not_declare_is_found_out() -> None:
    with pytest.raises(AssertionError):
        as_shape(b'{"count":1,"extra":2}', CountAnswer)
