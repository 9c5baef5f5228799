"""Every route with every method over real sockets: a method that writes is answered by a write, or refused."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.running import Front, Running, TableToServe, running
from lastword.teams.serving.board_guest import AbsentBoard
from support.addresses import ADDRESSES, GUEST_ADDRESSES, METHODS, NAMELESS, allowed

TOPIC = "test-every-method"
LINES = b'{"key": "k", "value": 1}\n'


@pytest.fixture(scope="module")
def served(connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    create_topic(connection, TOPIC)
    folder: Path = tmp_path_factory.mktemp("methods")
    wanted = [TableToServe.parse(f"users={TOPIC},short=true")]
    with running(connection, wanted, folder, Front(port=0), guests=[AbsentBoard()]) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made
    delete_topic(connection, TOPIC)


def ask(served: Running, method: str, path: str, body: bytes | None = None) -> tuple[int, str | None, bytes]:
    """Status, Allow and body; of a stream that was opened, no body."""
    asking = http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=60)
    try:
        asking.request(method, path, body)
        answer = asking.getresponse()
        is_stream = answer.getheader("content-type", "").startswith("text/event-stream")
        return answer.status, answer.getheader("allow"), b"" if is_stream else answer.read()
    finally:
        asking.close()


@pytest.mark.parametrize("path", [*ADDRESSES.values(), *GUEST_ADDRESSES.values()])
def test_a_route_takes_its_own_methods_and_refuses_all_others(served: Running, path: str) -> None:
    methods = allowed(next((kind for kind, address in ADDRESSES.items() if address == path), "guest"))
    for method in METHODS:
        status, allow, _ = ask(served, method, path, None if method in ("GET", "HEAD", "TRACE") else LINES)
        if method in methods:
            assert (status == 405, allow) == (False, None), (method, path)
        else:
            assert (status, allow) == (405, ", ".join(methods)), (method, path)


@pytest.mark.parametrize("method", METHODS)
def test_a_path_without_a_name_is_found_by_no_method(served: Running, method: str) -> None:
    answers = {path: ask(served, method, path, None if method == "TRACE" else LINES)[0] for path in NAMELESS}
    assert answers == dict.fromkeys(NAMELESS, 404)


def test_a_write_that_is_answered_with_200_is_in_the_topic(connection: Connection, served: Running) -> None:
    rows, row = ADDRESSES["rows"], ADDRESSES["row"]
    found = []
    with Table(connection, TOPIC) as table:
        for method, path, body in (("PUT", row, b"2"), ("DELETE", row, None), ("POST", rows, LINES)):
            found.append((ask(served, method, path, body)[0], table.get("k")))
    assert found == [(200, 2), (200, None), (200, 1)]
