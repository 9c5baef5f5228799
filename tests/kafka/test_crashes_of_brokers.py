"""kill -9 of the broker while rows are written: what was acknowledged is there, in the order in which it came."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lastword.core.errors import ClusterUnreachable
from lastword.core.position import Position
from lastword.core.row_json import Write
from lastword.kafka.broker.cluster_start import Started
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.loading import LoadStopped, load
from lastword.kafka.client.reading import fold_topic, log_bounds, read_log
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.killed_processes import kill_broker
from support.waiting import eventually

ROUNDS = int(os.environ.get("LASTWORD_SOAK", "1"))
ROWS, KEYS, KILLS = 30_000, 4_000, 2


@pytest.fixture
def broken(fragile: LocalCluster) -> Connection:
    assert fragile.spec is not None
    return Connection(bootstrap_servers=fragile.spec.bootstrap_servers)


def kill_and_start(cluster: LocalCluster, after_s: float) -> Started:
    time.sleep(after_s)
    kill_broker(cluster)
    return cluster.start()


def await_records(connection: Connection, topic: str, more_than: int = 0) -> int:
    """Waits until the topic has more records than that, and returns how many."""
    eventually(lambda: sum(log_bounds(connection, topic)[1].values()) > more_than)
    return sum(log_bounds(connection, topic)[1].values())


def in_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_load_during_which_the_broker_is_killed_loses_nothing(
    fragile: LocalCluster, broken: Connection, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    topic = f"load-{seed}"
    create_topic(broken, topic, partitions=3)
    rows = [(f"key-{chance.randrange(KEYS)}", number) for number in range(ROWS)]
    line = CommandLine(home=tmp_path, environ={"LASTWORD_BOOTSTRAP_SERVERS": broken.bootstrap_servers})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with line.start("load", topic, "-", **pipes) as loading:
        stdin = loading.stdin
        assert stdin is not None

        def feed(part: int) -> None:
            for start in range(part * ROWS // KILLS, (part + 1) * ROWS // KILLS, 1_000):
                stdin.writelines(f"{key}:{number}\n" for key, number in rows[start : start + 1_000])
                stdin.flush()
                time.sleep(0.03)

        there = 0
        for part in range(KILLS):
            feeding = in_background(lambda part=part: feed(part))  # type: ignore[misc]
            there = await_records(broken, topic, more_than=there)
            assert kill_and_start(fragile, after_s=chance.uniform(0, 0.5)).recovered == (1,)
            feeding.join()
        said, complaints = loading.communicate(timeout=120)
    assert (loading.returncode, said, complaints) == (0, f"{ROWS} records acknowledged\n", "")

    table = fold_topic(broken, topic).rows

    assert {key.decode(): json.loads(record.value or b"") for key, record in table.items()} == dict(rows)


@pytest.mark.soak
def test_every_row_acknowledged_one_by_one_while_the_broker_is_killed_is_there(
    fragile: LocalCluster, broken: Connection
) -> None:
    create_topic(broken, "puts", partitions=3)
    acknowledged: dict[str, int] = {}
    enough = threading.Event()

    def write() -> None:
        # With patience: on a busy machine a broker may take half a minute to recover.
        with Writer(broken, "puts", patience_s=120) as writer:
            while not enough.is_set():
                number = len(acknowledged)
                writer.write(b"key-%d" % number, b"%d" % number)
                acknowledged[f"key-{number}"] = number

    writing = in_background(write)
    there = 0
    for _ in range(ROUNDS):
        there = await_records(broken, "puts", more_than=there)
        assert kill_and_start(fragile, after_s=random.uniform(0, 0.5)).recovered == (1,)
    enough.set()
    writing.join(timeout=150)
    assert not writing.is_alive()

    assert len(acknowledged) >= there
    table = fold_topic(broken, "puts").rows
    assert {key.decode(): int(record.value or b"") for key, record in table.items()} == acknowledged


def test_a_load_whose_broker_does_not_come_back_says_how_many_were_acknowledged_and_they_are_there(
    fragile: LocalCluster, broken: Connection
) -> None:
    create_topic(broken, "stranded", partitions=1)
    written = [Write(b"key-%d" % number, b"%d" % number) for number in range(20_000)]

    def writes() -> Iterator[Write]:
        yield from written[:12_000]
        await_records(broken, "stranded")
        # They are in the log; their acknowledgement comes a moment later.
        time.sleep(1)
        kill_broker(fragile)
        yield from written[12_000:]

    with pytest.raises(LoadStopped) as stopped:
        load(broken, "stranded", writes(), patience_s=2)
    fragile.start()

    count = stopped.value.acknowledged
    assert stopped.value.exit_code == 3
    assert f"{count} of the " in str(stopped.value)
    assert 0 < count <= 12_000
    there = [record.key for batch in read_log(broken, "stranded") for record in batch]
    # One partition: what was acknowledged is there, once and in order. Of the rest nobody knows, and some may be twice.
    assert there[:count] == [write.key for write in written[:count]]
    assert set(there) <= {write.key for write in written}


def test_a_group_that_was_committed_to_while_the_broker_was_away_is_committed_to_afterwards(
    fragile: LocalCluster, broken: Connection, topic_name: str
) -> None:
    create_topic(broken, topic_name, partitions=1)
    group = GroupPosition(replace(broken, patience_s=2), topic_name)
    group.commit({topic_name: Position({0: 1})})
    kill_broker(fragile)
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            group.commit({topic_name: Position({0: 2})})
    fragile.start()

    eventually(lambda: _is_committed(group, topic_name))


def _is_committed(group: GroupPosition, topic: str) -> bool:
    try:
        group.commit({topic: Position({0: 3})})
    except ClusterUnreachable:
        return False
    return True
