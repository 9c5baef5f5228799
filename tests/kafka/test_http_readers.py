"""A hundred readers of changes, some of them stalled, while the server is killed and stopped and started again."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.serve_instance import Instance

READERS = 90
STALLED = 10
# In each round the server goes down once in the middle: by a kill, by a stop, by a kill...
ROUNDS = int(os.environ.get("LASTWORD_SOAK", "2"))
WRITES_A_ROUND = 600


class Reader:
    """Keeps every change it is sent; comes back with its last id whenever the stream ends."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.last_id = ""
        self.seen: list[tuple[int, int, str]] = []
        self.ends: Counter[str] = Counter()

    def has_reached(self, goal: Position) -> bool:
        return self.last_id != "" and Position.parse(self.last_id).covers(goal)

    async def read(self) -> None:
        while True:
            try:
                await self._stream()
            except (OSError, EOFError):
                self.ends["broken off"] += 1
            await asyncio.sleep(0.2)

    async def _stream(self) -> None:
        reading, writing = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            resume = f"last-event-id: {self.last_id}\r\n" if self.last_id else ""
            writing.write(f"GET /tables/users/changes HTTP/1.1\r\nhost: localhost\r\n{resume}\r\n".encode())
            status = int((await reading.readuntil(b"\r\n")).split()[1])
            await reading.readuntil(b"\r\n\r\n")
            assert status in (200, 503), status
            if status == 503:
                self.ends["not ready"] += 1
                return
            text, size = b"", 1
            while size:
                size = int(await reading.readuntil(b"\r\n"), 16)
                text += (await reading.readexactly(size + 2))[:-2]
                *events, text = text.split(b"\n\n")
                for event in events:
                    self._take(event.decode())
        finally:
            writing.close()

    def _take(self, event: str) -> None:
        fields = dict(line.partition(": ")[::2] for line in event.split("\n"))
        if fields.get("event") == "cut":
            self.ends[json.loads(fields["data"])["error"]["code"]] += 1
        elif "data" in fields:
            assert fields["event"] == "put", event
            told = json.loads(fields["data"])
            self.seen.append((told["partition"], told["offset"], told["key"]))
        self.last_id = fields.get("id", self.last_id)


class Writer:
    """Writes, and lets the server go down in the middle of each round."""

    def __init__(self, table: Table, instance: Instance) -> None:
        self._table = table
        self._instance = instance
        self.written: list[tuple[int, int, str]] = []

    def run(self) -> None:
        for turn in range(ROUNDS):
            for number in range(WRITES_A_ROUND):
                key = f"key-{number % 50}"
                ack = self._table.put(key, {"turn": turn, "text": "x" * 2000})
                self.written.append((ack.partition, ack.offset, key))
                if number == WRITES_A_ROUND // 2:
                    go_down = self._instance.kill if turn % 2 == 0 else self._instance.stop
                    go_down()
                    self._instance.start()

    @property
    def goal(self) -> Position:
        return Position({partition: offset + 1 for partition, offset, _ in self.written})


async def read_all(instance: Instance, writer: Writer) -> list[Reader]:
    """The readers, when each of them has come to where the writer ended."""
    readers = [Reader(instance.port) for _ in range(READERS)]
    reading = [asyncio.create_task(each.read()) for each in readers]
    try:
        async with asyncio.timeout(60):
            while not all(each.last_id for each in readers):
                await asyncio.sleep(0.1)
        await asyncio.to_thread(writer.run)
        async with asyncio.timeout(60):
            while not all(each.has_reached(writer.goal) for each in readers):
                await asyncio.sleep(0.1)
    finally:
        for task in reading:
            task.cancel()
        ended = await asyncio.gather(*reading, return_exceptions=True)
    assert [each for each in ended if not isinstance(each, asyncio.CancelledError)] == []
    return readers


def stalled(port: int) -> socket.socket:
    """A client that asks for changes and never takes any."""
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(b"GET /tables/users/changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
    return made


def memory_mb(instance: Instance) -> float:
    told = instance.ask("/metrics").body.decode()
    (line,) = (line for line in told.splitlines() if line.startswith("process_resident_memory_bytes "))
    return float(line.split()[1]) / 1e6


@pytest.mark.soak
def test_readers_miss_nothing_and_see_nothing_twice_whatever_happens_to_the_server(
    connection: Connection, topic_name: str, lastword: CommandLine, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=3)
    with Table(connection, topic_name) as table, Instance(lastword, tmp_path, f"users={topic_name}") as instance:
        writer = Writer(table, instance)
        with ExitStack() as idle:
            for _ in range(STALLED):
                idle.enter_context(stalled(instance.port))
            readers = asyncio.run(read_all(instance, writer))
    ends: Counter[str] = sum((each.ends for each in readers), Counter())
    print(f"{READERS} readers saw {len(writer.written)} changes each; their streams ended by {dict(ends)}")
    assert ends["broken off"] + ends["stopping"] >= READERS * ROUNDS
    for reader in readers:
        assert sorted(reader.seen) == sorted(writer.written)
        assert in_order_of_their_keys(reader.seen)


def in_order_of_their_keys(seen: list[tuple[int, int, str]]) -> bool:
    newest: dict[tuple[int, str], int] = {}
    for partition, offset, key in seen:
        if offset <= newest.get((partition, key), -1):
            return False
        newest[partition, key] = offset
    return True


def test_an_order_that_is_wrong_is_seen() -> None:
    assert in_order_of_their_keys([(0, 1, "a"), (1, 0, "b"), (0, 2, "a")])
    assert not in_order_of_their_keys([(0, 2, "a"), (0, 1, "a")])


def test_readers_who_take_nothing_cost_the_server_little_memory(
    connection: Connection, topic_name: str, lastword: CommandLine, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with (
        Table(connection, topic_name) as table,
        Instance(lastword, tmp_path, f"users={topic_name}") as instance,
        ExitStack() as idle,
    ):
        for _ in range(STALLED):
            idle.enter_context(stalled(instance.port))
        # Twice, so that what the store and the client keep for themselves is there before it is measured.
        for number in range(2):
            table.put_many([(f"key-{each % 50}", {"n": each, "text": "x" * 50_000}) for each in range(1000)])
            goal = table.put("end", number)
            assert instance.ask(f"/tables/users/rows/end?min_position={goal.position}").status == 200
            if number == 0:
                before = memory_mb(instance)
        # Ten times 50 MB were not taken.
        assert memory_mb(instance) - before < 100
