"""A disk that is full: the table shows what it has, says why it waits, and goes on when there is space."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.serve.running import Front, TableToServe, running
from support.cluster_routes import json_answer
from support.replicas import log_now
from support.waiting import eventually

MB = 1024 * 1024
ROWS = 30_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "lastword-tests", str(place)], capture_output=True, text=True
    )
    if mounted.returncode != 0 and "CI" not in os.environ:
        pytest.skip(f"only root can make a small disk: {mounted.stderr.strip()}")
    assert mounted.returncode == 0, mounted.stderr
    yield place
    subprocess.run(["umount", str(place)], check=True)


def expected_at(connection: Connection, topic: str, position: Position) -> dict[str, Any]:
    return {str(r.key, "ascii"): len(r.value or b"") for r in log_now(connection, topic, position) if r.key is not None}


@pytest.mark.open
def test_a_table_on_a_full_disk_goes_on_when_there_is_space_again_and_has_lost_nothing(
    connection: Connection, users: Table, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(42 * MB))
    chance = random.Random(1)
    wanted = [TableToServe.parse(f"users={users.topic}")]
    with running(connection, wanted, small_disk / "data", Front(port=0)) as made:
        replica = made.tables[0].replica
        replica.wait_until_ready(120)
        watch = replica.watch()
        users.put_many((f"key-{number}", chance.randbytes(400).hex()) for number in range(ROWS))
        ends = log_bounds(connection, users.topic)[1]
        eventually(lambda: replica.state.name == "failed")
        assert "no space is left" in str(replica.state.why)
        # What it has, with its honest position and lag.
        eventually(lambda: json_answer(made.url, "/tables/users")[1]["lag"] is not None)
        standing = json_answer(made.url, "/tables/users")[1]
        position = Position.parse(standing["position"])
        assert standing["state"] == "failed"
        assert standing["why"] == "no space is left on the disk: the replica continues once there is space"
        assert standing["lag"] == sum(end - position.get(partition, 0) for partition, end in ends.items()) > 0
        assert json_answer(made.url, "/ready")[0] == 503
        shown = {row.key: len(row.value) + 2 for row in replica.scan()}
        assert shown == expected_at(connection, users.topic, position)
        assert 0 < standing["rows"] == len(shown) < ROWS
        ballast.unlink()
        eventually(lambda: replica.state.name == "ready" and len(replica) == ROWS)
        assert {row.key: len(row.value) + 2 for row in replica.scan()} == expected_at(connection, users.topic, ends)
        # And whoever watched missed nothing.
        assert {next(watch).key for _ in range(ROWS)} == set(replica)
        assert replica.damages_found == 0
