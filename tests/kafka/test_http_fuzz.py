"""Requests that are none, over raw sockets: the server goes on, tells nothing of its machine and grows no larger."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from support.command_line import CommandLine
from support.odd_requests import CHUNKED, GOOD, ODD, OTHER
from support.raw_http import RawAnswer, exchange, put, request
from support.replicas import log_now
from support.waiting import eventually

# Its server is told an address alone.
pytestmark = pytest.mark.open

ROUNDS = int(os.environ.get("LASTWORD_SOAK", "1"))
TOPIC = "fuzzed-profiles"
TOKEN = "read-0123456789abcdef"  # noqa: S105
PLAIN = "/tables/users/rows/plain"
SLACK_MB = 150
SLACK_DESCRIPTORS = 20
# More than granian takes unless told, and as many as a process with 1024 descriptors is sure to have.
UNUSED = 400
_ODD_BYTES = [bytes([each]) for each in b"\x00\r\n%/: \xff"]
_ODD_BYTES += [b"\r\n", b"%00", b"%ff", b"..", b"\xed\xa0\x80", b"9" * 40]


class Fuzzed(NamedTuple):
    pid: int
    port: int
    errors: Path
    secrets: tuple[str, ...]

    @property
    def memory_mb(self) -> float:
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, text=True).stdout
        return int(told) / 1024

    @property
    def descriptors(self) -> int:
        folder = Path(f"/proc/{self.pid}/fd")
        return len(list(folder.iterdir())) if folder.exists() else 0

    def get(self, path: str) -> tuple[int, bytes]:
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            asking.request("GET", path)
            told = asking.getresponse()
            return told.status, told.read()
        finally:
            asking.close()


@pytest.fixture(scope="module")
def server(connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    create_topic(connection, TOPIC, partitions=3)
    Table(connection, TOPIC).put("plain", {"n": 1})
    folder = tmp_path_factory.mktemp("fuzz")
    line = CommandLine(home=folder, environ={"LASTWORD_BOOTSTRAP_SERVERS": connection.bootstrap_servers})
    with (folder / "errors").open("w") as errors:
        words = ("serve", "--table", f"users={TOPIC}", "--port", "0")
        process = line.start(*words, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    ready = next(told for told in process.stdout if told.startswith("ready: "))
    secrets = (str(folder), str(Path.home()), str(Path(__file__).parents[2]), connection.bootstrap_servers)
    yield Fuzzed(process.pid, int(ready.rpartition(":")[2]), folder / "errors", secrets)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    delete_topic(connection, TOPIC)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def guarded(connection: Connection, server: Fuzzed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same table where nobody gets in without a token."""
    front = Front(port=0, tokens=Tokens(reading=[TOKEN], writing=[]))
    with running(
        connection, [TableToServe.parse(f"users={TOPIC},short=true")], tmp_path_factory.mktemp("guarded"), front
    ) as made:
        yield made


@pytest.fixture
def fuzzed(server: Fuzzed) -> Iterator[Fuzzed]:
    """The server, which must answer right after whatever a test did to it, and have nothing to report."""
    yield server
    status, body = server.get(PLAIN)
    assert (status, json.loads(body)["value"]) == (200, {"n": 1})
    assert server.errors.read_text() == ""


@pytest.fixture
def bounded(fuzzed: Fuzzed) -> Iterator[Fuzzed]:
    """The same, and it must not keep memory or descriptors."""
    before = fuzzed.memory_mb, fuzzed.descriptors
    yield fuzzed
    eventually(lambda: fuzzed.descriptors <= before[1] + SLACK_DESCRIPTORS)
    assert fuzzed.memory_mb <= before[0] + SLACK_MB


def check(fuzzed: Fuzzed, back: RawAnswer) -> None:
    """Nothing went wrong in the server, and nothing of its machine is told."""
    assert all(status < 500 for status in back.statuses), back
    told = back.raw.decode("latin-1")
    assert [secret for secret in (*fuzzed.secrets, "Traceback", ".py") if secret in told] == []


@pytest.mark.parametrize("name", ODD)
def test_an_odd_request_is_answered_as_the_page_says(fuzzed: Fuzzed, name: str) -> None:
    sent, statuses, ended = ODD[name]
    back = exchange(fuzzed.port, sent)
    check(fuzzed, back)
    # Whoever is still sending when the connection ends may miss the answer.
    missed = len(sent) > 64 * 1024 and ended and not back.raw
    assert (statuses if missed else back.statuses, back.ended) == (statuses, ended)


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 4", CHUNKED),
        (CHUNKED, "Content-Length: 4"),
        (CHUNKED, "Transfer-Encoding: identity"),
        ("Transfer-Encoding: xchunked", "Content-Length: 5"),
        ("Transfer-Encoding : chunked", "Content-Length: 5"),
        ("Transfer-Encoding:\x0bchunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 0"),
    ],
)
def test_no_request_is_smuggled_in_the_body_of_another(
    connection: Connection, fuzzed: Fuzzed, headers: tuple[str, ...]
) -> None:
    inner = request(PLAIN, method="DELETE")
    back = exchange(fuzzed.port, put(OTHER, *headers, body=b"0\r\n\r\n" + inner))
    check(fuzzed, back)
    # One answer at most, and the connection has ended: whatever follows is not taken for a request.
    assert (len(back.statuses) <= 1, back.ended) == (True, True)
    assert [record.key for record in log_now(connection, TOPIC) if record.value is None] == []


@pytest.mark.parametrize("leaves", ["in order", "at once"])
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Length: 5", b"12"),
        (CHUNKED, b"2\r\n12\r\n"),
        (CHUNKED, b"5\r\n12"),
        (CHUNKED, b"2\r\n12\r\nzz\r\n"),
    ],
)
def test_a_body_that_breaks_off_is_not_written(
    connection: Connection, fuzzed: Fuzzed, headers: str, body: bytes, leaves: str
) -> None:
    with socket.create_connection(("127.0.0.1", fuzzed.port), timeout=60) as sender:
        sender.sendall(put("/tables/users/rows/broken", headers, body=body))
        if leaves == "in order":
            sender.shutdown(socket.SHUT_WR)
            back = RawAnswer(sender.recv(1 << 16), True)
            check(fuzzed, back)
            assert b"body_broken" in back.raw
        else:
            time.sleep(0.1)
            # A reset, as from a process that was killed.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange(fuzzed.port, put("/tables/users/rows/after", "Content-Length: 1", body=b"1"))
    assert [record for record in log_now(connection, TOPIC) if record.key == b"broken"] == []


def test_a_client_that_sends_its_body_later_still_reads_why_it_was_refused(fuzzed: Fuzzed) -> None:
    with socket.create_connection(("127.0.0.1", fuzzed.port), timeout=60) as sender:
        for number in range(20):
            sender.sendall(put("/nothing", "Content-Length: 100000"))
            time.sleep(0.01)
            sender.sendall(bytes(100_000))
            # On the same connection, which goes on.
            assert (number, sender.recv(1 << 16)[:12]) == (number, b"HTTP/1.1 404")


def damaged(chance: random.Random) -> bytes:
    """A request or several with some bytes changed, left out, doubled or put in."""
    path = chance.choice(["/health", "/users", "/tables/users/rows?limit=2", PLAIN, "/users/count", "/openapi.json"])
    sent = bytearray(
        chance.choice(
            [
                request(path, method=chance.choice(["GET", "HEAD"])),
                request(path) * 3,
                put(OTHER, "Content-Length: 7", body=b'{"n":1}'),
                put(OTHER, CHUNKED, body=b'7\r\n{"n":1}\r\n0\r\n\r\n'),
                request("/tables/users/rows", "Content-Length: 23", body=b'{"key":"a","value":"b"}', method="POST"),
                chance.randbytes(200),
            ]
        )
    )
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(sent))
        until = at + chance.randint(0, 3)
        sent[at:until] = chance.choice([*_ODD_BYTES, chance.randbytes(3), bytes(sent[at:until]) * 2])
    return bytes(sent)


@pytest.mark.soak
def test_damaged_requests_do_no_harm(bounded: Fuzzed) -> None:
    chance = random.Random(20)
    requests = [damaged(chance) for _ in range(600 * ROUNDS)]
    seen = Counter[int]()
    with ThreadPoolExecutor(20) as senders:
        for back in senders.map(lambda sent: exchange(bounded.port, sent, patience_s=1), requests):
            check(bounded, back)
            seen.update(back.statuses)
    # Damaged, but not beyond recognition.
    assert {200, 400, 404, 405} <= seen.keys()


def test_large_heads_and_bodies_are_not_kept(bounded: Fuzzed) -> None:
    eight_mb = b'"' + b"a" * (8 * 1024 * 1024) + b'"'
    large = [
        request("/health", "x: " + "a" * 120_000),
        request("/health", "x: " + "a" * 5_000_000),
        put(OTHER, f"Content-Length: {len(eight_mb)}", body=eight_mb),
        put(OTHER, CHUNKED, body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(eight_mb), eight_mb)),
    ]
    with ThreadPoolExecutor(4) as senders:
        for back in senders.map(lambda sent: exchange(bounded.port, sent), large * 10):
            check(bounded, back)


def test_connections_that_are_never_used_keep_nobody_waiting(bounded: Fuzzed) -> None:
    unused = [socket.create_connection(("127.0.0.1", bounded.port), timeout=60) for _ in range(UNUSED)]
    slow = [socket.create_connection(("127.0.0.1", bounded.port), timeout=60) for _ in range(20)]
    ends_at = time.monotonic() + 20
    ended = 0
    for number in range(1000):
        assert bounded.get("/health")[0] == 200
        for each in slow:
            try:
                # A header of which another byte comes now and then, and never the last.
                each.sendall(GOOD[number : number + 1] if number < 30 else b"a")
            except OSError:
                ended += 1
        if ended or time.monotonic() > ends_at:
            break
        time.sleep(0.3)
    assert ended > 0
    assert [each.recv(1) for each in unused] == [b""] * UNUSED
    for each in (*unused, *slow):
        each.close()


NO_TOKENS = ["", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN} {TOKEN}"]
NO_TOKENS += ["Bearer \xff", "Bearer \x00", "Bearer " + "a" * 100_000, "Bearer " * 1000, f"Bearer\t{TOKEN}"]


@pytest.mark.parametrize("told", NO_TOKENS, ids=range(len(NO_TOKENS)))
def test_what_is_no_token_opens_nothing_and_no_token_is_told(
    connection: Connection, guarded: Running, caplog: pytest.LogCaptureFixture, told: str
) -> None:
    port = int(guarded.url.rpartition(":")[2])
    back = exchange(port, request("/tables", f"Authorization: {told}"))
    assert back.statuses in ([401], [400])
    assert TOKEN.encode() not in back.raw
    assert TOKEN not in caplog.text


def test_one_connection_carries_many_requests_of_all_kinds(fuzzed: Fuzzed) -> None:
    asking = http.client.HTTPConnection("127.0.0.1", fuzzed.port, timeout=60)

    def told(method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        asking.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = asking.getresponse()
        assert not answer.will_close
        return answer.status, answer.read()

    asking.request("GET", PLAIN)
    first = asking.getresponse()
    row, etag, socket_at_first = first.read(), first.headers["etag"], asking.sock
    for number in range(200):
        assert told("GET", PLAIN) == (200, row)
        assert told("HEAD", PLAIN) == (200, b"")
        assert told("GET", PLAIN, if_none_match=etag) == (304, b"")
        assert told("PUT", OTHER, b"%d" % number)[0] == 200
        assert told("PUT", OTHER, b"{")[0] == 400
        assert told("PATCH", PLAIN, b"{}")[0] == 405
        assert told("GET", "/nothing")[0] == 404
    assert asking.sock is socket_at_first
    asking.close()
