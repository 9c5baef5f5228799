"""kill -9 of a replica's process at random instants: rows, count and position agree with the fold afterwards."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lastword.core.row_json import Write
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import load
from lastword.kafka.topics.topic_changes import create_topic
from support.processes import running_with
from support.replicas import disagreements, log_now, replica_of
from support.waiting import eventually

# It kills processes that are told an address alone.
pytestmark = pytest.mark.open

SOAK = os.environ.get("LASTWORD_SOAK")
ROUNDS = int(SOAK or "1")
# In each round; ten rounds of a soak are a hundred for each way of building, and a hundred and fifty while following.
KILLS_OF_BUILDERS, KILLS_OF_FOLLOWERS = (10, 15) if SOAK else (2, 6)
ROWS, KEYS, PARTITIONS = 40_000, 3_000, 3

# Every table counts as a large one, so that it is built by workers, with so much memory.
_FOLLOW = """\
import sys
from pathlib import Path
from lastword.core.codecs import codec_named
from lastword.kafka.client.connection import Connection
from lastword.replica.building.rebuild import build
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
servers, topic, folder, memory_mb = sys.argv[1:]
def with_memory(*given, **options):
    return build(*given, **{**options, "memory_mb": int(memory_mb)})
with Replica(
    Connection(bootstrap_servers=servers),
    topic,
    Path(folder),
    key_codec=codec_named("bytes"),
    value_codec=codec_named("json"),
    settings=ReplicaSettings(),
    steps=ReplicaSteps(build=with_memory, build_from_offsets=1),
) as replica:
    replica.wait_until_ready()
    print("ready", flush=True)
    sys.stdin.read()
"""


def writes(chance: random.Random, count: int) -> list[Write]:
    return [
        Write(b"key-%d" % chance.randrange(KEYS), None if chance.random() < 0.1 else b'{"number":%d}' % number)
        for number in range(count)
    ]


@contextmanager
def writing(connection: Connection, topic: str, chance: random.Random) -> Iterator[None]:
    """Rows are put and deleted all the time, in small bursts."""
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.02):
            load(connection, topic, writes(chance, 200))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def kill(
    connection: Connection, topic: str, folder: Path, *, once_ready: bool, after_s: float, memory_mb: int = 1024
) -> None:
    """Runs a replica's process and kills it so long after its start, or after it has become ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", _FOLLOW, connection.bootstrap_servers, topic, str(folder), str(memory_mb)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    if once_ready:
        assert process.stdout.readline() == b"ready\n"
    time.sleep(after_s)
    process.kill()
    assert process.communicate()[1] == b""


def check(connection: Connection, topic: str, folder: Path) -> str:
    """What is on disk, seen without a cluster, is the fold at its position; says what there was."""
    nowhere = Connection(bootstrap_servers="127.0.0.1:1")
    with replica_of(nowhere, topic, folder, wait=False) as replica:
        if not replica.position:
            return "nothing yet"
        assert disagreements(replica, log_now(connection, topic)) == []
        return "rows"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
# All rows in memory until the merge; and many runs, written by the way.
@pytest.mark.parametrize("memory_mb", [1024, 16])
def test_a_replica_that_is_killed_while_building_is_whole_or_not_there(
    connection: Connection, topic_name: str, tmp_path: Path, seed: int, memory_mb: int
) -> None:
    chance = random.Random(seed)
    create_topic(connection, topic_name, partitions=PARTITIONS)
    load(connection, topic_name, writes(chance, ROWS))
    found = []
    for number in range(KILLS_OF_BUILDERS):
        folder = tmp_path / str(number)
        kill(connection, topic_name, folder, once_ready=False, after_s=chance.uniform(0.2, 1.2), memory_mb=memory_mb)
        eventually(lambda folder=folder: running_with(folder) == [])  # type: ignore[misc]
        found.append(check(connection, topic_name, folder))
        with replica_of(connection, topic_name, folder) as replica:
            assert disagreements(replica, log_now(connection, topic_name)) == []
        assert {path.name.partition("-")[0] for path in folder.iterdir()} == {"owner.lock", "store"}
    print(f"killed while building with {memory_mb} MB, {KILLS_OF_BUILDERS} times, and found: {found}")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_replica_that_is_killed_again_and_again_while_it_follows_agrees_with_the_fold(
    connection: Connection, topic_name: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    create_topic(connection, topic_name, partitions=PARTITIONS)
    with writing(connection, topic_name, chance):
        for number in range(KILLS_OF_FOLLOWERS):
            once_ready = number % 3 != 0
            kill(connection, topic_name, tmp_path, once_ready=once_ready, after_s=chance.uniform(0, 0.6))
            found = check(connection, topic_name, tmp_path)
            assert found == "rows" or not once_ready
    with replica_of(connection, topic_name, tmp_path) as replica:
        assert disagreements(replica, log_now(connection, topic_name)) == []


def test_the_check_objects_to_rows_without_their_position(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    """The negative control: a store whose position was committed apart from its rows is found out."""
    create_topic(connection, topic_name, partitions=1)
    load(connection, topic_name, [Write(b"a", b"1"), Write(b"b", b"2")])
    with replica_of(connection, topic_name, tmp_path) as replica:
        store = replica._follower.store
        assert store is not None
        store.apply([], {0: store.partitions[0]._replace(position=1)})
    with pytest.raises(AssertionError, match="rows"):
        check(connection, topic_name, tmp_path)
