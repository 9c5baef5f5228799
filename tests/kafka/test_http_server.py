"""The server over real sockets: what passes through granian, how it stops, and the verb that runs it."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.core.errors import BadInput, NotFound
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.http.limits import Limits
from lastword.serve.running import Front, Running, TableToServe, running
from support.command_line import CommandLine
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


@pytest.fixture
def served(connection: Connection, topic: str, tmp_path: Path) -> Iterator[Running]:
    with running(connection, [TableToServe.parse(f"users={topic},short=true")], tmp_path, Front(port=0)) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def get(
    url: str, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    asking = http.client.HTTPConnection(*address_of(url), timeout=60)
    try:
        asking.request(method, path, headers=headers or {})
        told = asking.getresponse()
        return told.status, {name.lower(): text for name, text in told.getheaders()}, told.read()
    finally:
        asking.close()


def code_of(told: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    return told[0], json.loads(told[2])["error"]["code"]


def test_a_row_is_read_over_http_and_not_sent_twice(connection: Connection, topic: str, served: Running) -> None:
    ack = Table(connection, topic).put("é/1", {"n": 1})
    path = f"/tables/users/rows/%C3%A9%2F1?min_position={ack.position}"
    status, headers, body = get(served.url, path)
    assert (status, json.loads(body)["key"], json.loads(body)["value"]) == (200, "é/1", {"n": 1})
    head = get(served.url, path, "HEAD")
    assert (head[0], head[1]["etag"], head[1]["content-length"], head[2]) == (200, headers["etag"], str(len(body)), b"")
    again = get(served.url, path, headers={"If-None-Match": headers["etag"]})
    assert (again[0], again[1]["etag"], again[2]) == (304, headers["etag"], b"")


def test_one_connection_asks_many_times(served: Running) -> None:
    asking = http.client.HTTPConnection(*address_of(served.url), timeout=60)
    for _ in range(50):
        asking.request("GET", "/tables/users/rows/nobody")
        told = asking.getresponse()
        assert (told.status, json.loads(told.read())["error"]["code"]) == (404, "key_not_found")
    asking.close()


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/tables/users/rows/%ff", 400, "bad_path"),
        ("/tables/users/rows/%ED%A0%80", 400, "bad_path"),
        ("/tables/users/rows/%00", 404, "key_not_found"),
        ("/tables/users/rows/../../secret", 404, "key_not_found"),
        ("/tables/../users", 404, "no_such_route"),
        ("/tables/%2e%2e/rows/a", 404, "no_such_table"),
        ("/tables/users/rows?prefix=%ff", 400, "bad_query"),
        ("/console/../serve/tokens.py", 404, "no_such_route"),
    ],
)
def test_tricks_in_a_path_get_the_one_error_shape(served: Running, path: str, status: int, code: str) -> None:
    assert code_of(get(served.url, path)) == (status, code)


def test_a_name_that_was_turned_to_point_here_gets_nothing(served: Running) -> None:
    port = address_of(served.url)[1]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "evil.example:x"):
        assert code_of(get(served.url, "/health", headers={"Host": host})) == (403, "bad_host")
    # Whatever port it has: that of a tunnel, say.
    for host in ("localhost", f"LOCALHOST:{port}", f"[::1]:{port}", "127.0.0.1", "localhost:1"):
        assert get(served.url, "/health", headers={"Host": host})[0] == 200


def test_one_process_serves_several_tables_with_their_codecs(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    other = f"{topic}-other"
    create_topic(connection, other, partitions=1)
    Table(connection, topic).put("a", {"n": 1})
    Table(connection, other, value="string").put("a", "text")
    wanted = [TableToServe.parse(f"users={topic},short=true"), TableToServe.parse(f"texts={other},value=string")]
    with running(connection, wanted, tmp_path, Front(port=0)) as made:
        eventually(lambda: get(made.url, "/ready")[0] == 200)
        values = [json.loads(get(made.url, f"/tables/{name}/rows/a")[2])["value"] for name in ("users", "texts")]
    delete_topic(connection, other)
    assert values == [{"n": 1}, "text"]


def test_a_port_that_is_taken_is_refused_and_not_shared(
    connection: Connection, served: Running, topic: str, tmp_path: Path
) -> None:
    port, wanted = address_of(served.url)[1], [TableToServe.parse(f"users={topic},short=true")]
    with (
        pytest.raises(BadInput, match=f"port {port} is taken: choose another"),
        running(connection, wanted, tmp_path / "second", Front(port=port)),
    ):
        pass


def test_a_stop_lets_a_request_under_way_finish(connection: Connection, topic: str, tmp_path: Path) -> None:
    table, told = Table(connection, topic), []
    first = table.put("a", 1)
    with running(
        connection, [TableToServe.parse(f"users={topic},short=true")], tmp_path, Front(port=0), limits=Limits(wait_s=5)
    ) as made:
        made.tables[0].replica.wait_for(first)
        path = f"/tables/users/rows/a?min_position={first.partition}:{first.offset + 2}"
        asking = threading.Thread(target=lambda: told.append(get(made.url, path)))
        asking.start()
        time.sleep(0.3)
        threading.Timer(0.5, lambda: table.put("a", 2)).start()
    asking.join()
    assert json.loads(told[0][2])["value"] == 2


@pytest.mark.parametrize(
    "text", ["users", "=t", "users=", "a/b=t", "users=t,kye=string", "users=t,key=strin", "users=..", "users=a/b"]
)
def test_a_table_that_is_not_written_well_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        TableToServe.parse(text)


def test_a_name_or_a_topic_is_served_once(connection: Connection, topic: str, tmp_path: Path) -> None:
    for texts in ([f"a={topic}", f"a={topic}2"], [f"a={topic}", f"b={topic}"]):
        with (
            pytest.raises(BadInput, match="is given to two tables"),
            running(connection, [TableToServe.parse(text) for text in texts], tmp_path, Front(port=0)),
        ):
            pass


def test_a_topic_that_is_not_there_is_said_at_once(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(NotFound, match=topic_name),
        running(connection, [TableToServe.parse(f"a={topic_name}")], tmp_path, Front(port=0)),
    ):
        pass


def started(lastword: CommandLine, *words: str) -> tuple[subprocess.Popen[str], str]:
    """A process that serves, and its address once it is ready."""
    process = lastword.start("serve", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("ready: "):
            url = line.split()[-1]
            assert f"the console is at {url}/\n" in said
            return process, url
    raise AssertionError(process.communicate())


def ended(process: subprocess.Popen[Any]) -> tuple[int, str, str]:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_the_verb_serves_until_it_is_told_to_stop_and_keeps_its_rows(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    Table(connection, topic).put("user-1", {"name": "Alice"})
    words = ("--table", f"users={topic}", "--port", "0", "--data", str(tmp_path / "data"))
    for _ in range(2):
        process, url = started(lastword, *words)
        try:
            assert json.loads(get(url, "/users/user-1")[2]) == {"name": "Alice"}
        finally:
            assert ended(process) == (0, "stopped\n", "")
    assert [path.name for path in (tmp_path / "data").iterdir()] == [topic]


def test_the_verb_serves_others_only_with_tokens_and_writes_a_line_for_each_request(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    words = ("--table", f"users={topic}", "--port", "0", "--data", str(tmp_path / "data"), "--host", "0.0.0.0")  # noqa: S104
    refused = lastword.run("serve", *words)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "can be reached by others: say who may read and write with --token-file" in refused.stderr
    file = tmp_path / "tokens.txt"
    file.write_text("read 0123456789abcdef-secret\n")
    file.chmod(0o600)
    process, url = started(lastword, *words, "--token-file", str(file), "--access-log")
    try:
        local = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert get(local, "/tables")[0] == 401
        assert get(local, "/tables", headers={"Authorization": "Bearer 0123456789abcdef-secret"})[0] == 200
    finally:
        code, out, err = ended(process)
    assert (code, err, out.splitlines()[-1]) == (0, "", "stopped")
    assert [json.loads(line)["status"] for line in out.splitlines()[:-1]] == [401, 200]
    assert "secret" not in out


def test_a_client_with_half_a_request_does_not_keep_the_process(lastword: CommandLine, topic: str) -> None:
    process, url = started(lastword, "--table", f"users={topic}", "--port", "0")
    with socket.create_connection(address_of(url)) as half, socket.create_connection(address_of(url)) as idle:
        half.sendall(b"GET /tab")
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(1000).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert ended(process)[0] == 0
        assert time.monotonic() - began < 15
