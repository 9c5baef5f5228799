"""The pieces of the HTTP benchmark: what a reader keeps, what it refuses, and what is said without wrk."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.http.change_readers import Reader, refuse_incomplete
from benchmarks.http.freshness import KeptAlive
from benchmarks.http.wrk import found_wrk
from benchmarks.input.paced_writer import Pace
from benchmarks.measuring.cpu_time import cpu_seconds
from lastword.core.errors import BadInput

STREAM = (
    b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
    b"retry: 1000\n\nid: 0:7\n\n",
    b'id: 0:8\nevent: put\ndata: {"key":"user-1","value":{"number":0,"handed_over":1.5},"partition":0}\n\nid: 0:9\nev',
    b'ent: put\ndata: {"key":"user-2","value":{"number":1,"handed_over":2.5},"partition":0}\n\n: heartbeat\n\n',
)


@contextmanager
def answering(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of someone who takes one connection and talks to it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                talk(client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(120)


def test_a_reader_tells_each_change_with_the_moment_its_last_byte_came() -> None:
    taken = [threading.Event() for _ in STREAM]

    def talk(client: socket.socket) -> None:
        for part, seen in zip(STREAM, taken, strict=True):
            client.sendall(part)
            assert seen.wait(120)

    with answering(talk) as port:
        reader = Reader(port)
        for seen in taken:
            reader.take()
            seen.set()
        reader.await_begin()
        reader.socket.close()
    assert reader.changes() == [(0, 1.5, reader.moments[2]), (1, 2.5, reader.moments[3])]


def test_a_stream_that_is_refused_ends_the_readers() -> None:
    def refuse(client: socket.socket) -> None:
        assert client.recv(1000).startswith(b"GET /tables/users/changes ")
        client.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n{}")

    with answering(refuse) as port:
        reader = Reader(port)
        with reader.socket, pytest.raises(SystemExit, match="404"):
            reader.await_begin()


@pytest.mark.parametrize("numbers", [[0, 2], [0, 1, 1, 2], [0, 1, 2, 3]])
def test_readers_with_a_change_missing_or_twice_are_refused(numbers: list[int]) -> None:
    refuse_incomplete([2, 0, 1], 3)
    with pytest.raises(SystemExit, match="3 were written"):
        refuse_incomplete(numbers, 3)


def test_an_answer_that_comes_in_parts_is_given_whole_and_no_more_than_it() -> None:
    def talk(client: socket.socket) -> None:
        for body in (b"one", b"three"):
            assert client.recv(1000).startswith(b"GET /x HTTP/1.1\r\n")
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r" % len(body))
            client.sendall(b"\n" + body[:1])
            client.sendall(body[1:])

    with answering(talk) as port:
        asking = KeptAlive(port)
        assert asking.get("/x").endswith(b"\r\n\r\none")
        assert asking.get("/x").endswith(b"\r\n\r\nthree")
        asking.close()


def test_a_pace_says_which_of_its_writes_are_samples() -> None:
    slow, fast = Pace(per_second=10, seconds=3, keys=5), Pace(per_second=20_000, seconds=3, keys=5)
    assert (slow.records, slow.samples, slow.sampled_every) == (30, 30, 1)
    assert (fast.records, fast.samples, fast.sampled_every) == (60_000, 300, 200)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells the CPU time of another process")
def test_the_cpu_time_of_a_process_grows_with_what_it_does() -> None:
    before = cpu_seconds(os.getpid())
    assert before is not None
    while (now := cpu_seconds(os.getpid())) is not None and now <= before:
        sum(range(10_000))
    assert now is not None


def test_without_wrk_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="apt-get install wrk nginx") as refusal:
        found_wrk(tmp_path, 1)
    assert refusal.value.exit_code == 2
