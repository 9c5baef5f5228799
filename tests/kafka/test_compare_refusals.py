"""What the verb `compare` says of bad addresses, strangers, servers that are not ready or die, and tokens."""

from __future__ import annotations

import http.server
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.processes.ports import PortPicker
from lastword.serve.running import Front, TableToServe, running
from support.command_line import CommandLine
from support.generated_logs import Put, leave_open
from support.serve_instance import Instance


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


def compare(lastword: CommandLine, first: str, second: str, *words: str) -> subprocess.CompletedProcess[str]:
    return lastword.run("compare", first, second, *words)


class Quiet(http.server.BaseHTTPRequestHandler):
    """A server that is none of ours."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.say(404, b"<h1>nothing here</h1>")

    def say(self, status: int, body: bytes, announced: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-length", str(announced or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(kind: type[Quiet]) -> Iterator[str]:
    """The address at which it answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8090", "ftp://127.0.0.1", "http://", "http://h:99999", "http://h/tables/a b", "http://h/?x=1"],
)
def test_what_is_no_address_is_refused(alone: CommandLine, url: str) -> None:
    done = compare(alone, url, "http://127.0.0.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "write it like http://127.0.0.1:8090" in done.stderr


def test_a_password_in_an_address_is_refused_and_not_shown(alone: CommandLine) -> None:
    done = compare(alone, "http://me:secret@127.0.0.1:1", "http://127.0.0.1:1")
    assert (done.returncode, "secret" in done.stderr) == (2, False)


def free_port() -> int:
    with PortPicker() as picker:
        return picker.free()


def test_where_nothing_listens_the_exit_code_is_3(alone: CommandLine) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = compare(alone, url, url)
    assert (done.returncode, done.stderr) == (
        3,
        f"lastword: {url} can't be reached (Connection refused): is  lastword serve  running there?\n",
    )


def test_a_server_of_another_kind_is_no_lastword_server(alone: CommandLine) -> None:
    with serving(Quiet) as url:
        done = compare(alone, url, url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{url} is no lastword server (GET /tables gave 404 " in done.stderr


def test_what_speaks_no_http_is_no_lastword_server(alone: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(1000)
                client.sendall(b"220 mail.example ESMTP\r\n")

        threading.Thread(target=greet, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        done = compare(alone, url, url)
    assert (done.returncode, f"{url} is no lastword server (it does not answer in HTTP)" in done.stderr) == (2, True)


@pytest.fixture
def served(lastword: CommandLine, topic: str, tmp_path: Path) -> Iterator[Instance]:
    with Instance(lastword, tmp_path / "data", f"users={topic}") as instance:
        yield instance


@pytest.mark.parametrize(("after", "why"), [(b"", "without an answer"), (b"{", "in the middle of an answer")])
def test_a_server_that_dies_midway_is_one_clear_line(
    served: Instance, lastword: CommandLine, after: bytes, why: str
) -> None:
    tables = served.ask("/tables").body

    class Dying(Quiet):
        """Says what the other one says of its tables, and ends at the first page."""

        def do_GET(self) -> None:
            if self.path == "/tables":
                self.say(200, tables)
                return
            if after:
                self.say(200, after, announced=100)
            self.close_connection = True

    with serving(Dying) as url:
        done = compare(lastword, served.url, url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith(f"lastword: {url} can't be reached (it ended ")
    assert why in done.stderr


def test_a_table_that_is_not_ready_is_not_compared(
    lastword: CommandLine, connection: Connection, topic: str, tmp_path: Path
) -> None:
    producer = leave_open(connection, topic, [Put(key=b"a", value=b"1", partition=0)])
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path / "one", Front(port=0)) as one:
        done = compare(lastword, one.url, one.url)
        assert (done.returncode, f"users at {one.url} is not ready, it is " in done.stderr) == (2, True), done.stderr
        assert f"compare again when {one.url}/ready says so" in done.stderr
    producer.abort_transaction(30)


def test_the_first_token_of_a_file_is_sent_to_both(alone: CommandLine, tmp_path: Path) -> None:
    seen = []

    class Guard(Quiet):
        def do_GET(self) -> None:
            seen.append(self.headers["authorization"])
            self.say(200, b'{"tables": []}')

    tokens = tmp_path / "tokens"
    tokens.write_text("# ours\n\nread one-token-of-ours-1234\nwrite another-token-of-ours\n")
    tokens.chmod(0o600)
    with serving(Guard) as url:
        assert compare(alone, url, url, "--token-file", str(tokens)).returncode == 0
    assert seen == ["Bearer one-token-of-ours-1234"] * 2


@pytest.mark.parametrize("text", ["", "# none\n", "secret-alone\n", "admin secret\n", "read\n"])
def test_a_token_file_that_can_not_be_read_is_refused_without_showing_it(
    alone: CommandLine, tmp_path: Path, text: str
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(text)
    tokens.chmod(0o600)
    done = compare(alone, "http://127.0.0.1:1", "http://127.0.0.1:1", "--token-file", str(tokens))
    assert (done.returncode, str(tokens) in done.stderr, "secret" in done.stderr) == (2, True, False)
