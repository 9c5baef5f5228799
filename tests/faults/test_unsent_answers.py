"""Clients that ask for much and read nothing: what waits for them is bounded, and others are served meanwhile."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.serve_instance import Instance
from support.waiting import eventually

_CLIENTS = 60
_ROW_BYTES = 20_000_000
_LARGE = "/tables/users/rows/large"


def asking(port: int) -> socket.socket:
    """A client that asks for the large row, and reads nothing."""
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(f"GET {_LARGE} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return made


def status_of(client: socket.socket) -> bytes:
    client.settimeout(60)
    return client.recv(64).split(b" ")[1]


def memory_mb(instance: Instance) -> float:
    (line,) = (
        line
        for line in instance.ask("/metrics").body.decode().splitlines()
        if line.startswith("process_resident_memory_bytes ")
    )
    return float(line.split()[1]) / 1e6


def test_clients_that_read_nothing_of_a_large_row_take_no_more_than_is_allowed(
    connection: Connection, topic_name: str, lastword: CommandLine, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"max.message.bytes": "41943040"})
    serving = Instance(lastword, tmp_path, f"users={topic_name}", options=["--unsent-mb", "64"])
    with Table(connection, topic_name) as table, serving as instance:
        table.put("large", "x" * _ROW_BYTES)
        goal = table.put("small", 1)
        assert instance.ask(f"/tables/users/rows/small?min_position={goal.position}").status == 200
        assert len(instance.ask(_LARGE).body) > _ROW_BYTES
        before = memory_mb(instance)
        with ExitStack() as idle:
            clients = [idle.enter_context(asking(instance.port)) for _ in range(_CLIENTS)]
            statuses = [status_of(client) for client in clients]
            assert sorted(set(statuses)) == [b"200", b"503"]
            assert statuses.count(b"200") == 3
            assert memory_mb(instance) - before < 250
            assert instance.ask("/tables/users/rows/small").status == 200
            refused = instance.ask(_LARGE)
            assert (refused.status, refused.json["error"]["code"]) == (503, "too_many_unsent")
            assert refused.headers["retry-after"] == "1"
        eventually(lambda: instance.ask(_LARGE).status == 200)
