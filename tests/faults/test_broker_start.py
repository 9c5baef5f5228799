"""What `broker start` says of a cluster that is not as it should be: what is known, and no more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.core.errors import BadInput
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.compaction.on_demand import compact_topic
from support.command_line import JARS, CommandLine
from support.compacted_logs import make_topic
from support.waiting import eventually


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose cleaner is off."""
    made = LocalCluster.at(tmp_path_factory.mktemp("home"), JARS)
    # On a busy machine a broker may take minutes, and a start that is told so has nothing more to say.
    made.ready_timeout_s = 300
    try:
        yield made
    finally:
        made.stop()


def write_batches(connection: Connection, topic: str, batches: int) -> None:
    """Batches of ten records each, of one length."""
    # Sent by the flush, and not by the clock, which could make two of one.
    producer = connection.producer(linger_ms=10_000)
    for _ in range(batches):
        for n in range(10):
            producer.produce(topic, key=f"key-{n}", value="x" * 50)
        assert producer.flush(30) == 0


def segment(cluster: LocalCluster, partition: str) -> Path:
    return next((cluster.folder / "node-1" / "data" / partition).glob("*.log"))


def kill(cluster: LocalCluster) -> None:
    (broker,) = cluster.status()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    eventually(lambda: cluster.status()[0].pid is None)


def test_a_cleaner_that_is_off_is_named_by_every_start_and_by_a_compaction(cluster: LocalCluster) -> None:
    line = CommandLine(home=cluster.folder.parent.parent)
    (warning,) = cluster.start(port=0, settings={"log.cleaner.enable": "false"}).warnings
    assert warning.startswith("log.cleaner.enable=false: no topic is ever compacted")
    assert line.run("broker", "start").stderr == f"lastword: {warning}\n"
    make_topic(cluster.connection, "users")
    write_batches(cluster.connection, "users", batches=2)

    refused = line.run("topic", "compact", "users")

    assert refused.returncode == 2
    assert "users can't be compacted: log.cleaner.enable=false on broker 1, so Kafka compacts nothing" in refused.stderr
    assert "lastword broker start --set log.cleaner.enable=true" in refused.stderr


def test_a_cleaner_that_is_off_on_every_broker_is_named_by_a_compaction(tmp_path: Path) -> None:
    with LocalCluster(name="two", folder=tmp_path, jars=JARS, owned=True) as cluster:
        cluster.ready_timeout_s = 300
        cluster.start(port=0, brokers=2, settings={"log.cleaner.enable": "false"})
        make_topic(cluster.connection, "users", partitions=2)
        write_batches(cluster.connection, "users", batches=2)
        partitions = cluster.connection.topic("users").partitions.values()
        assert {partition.leader for partition in partitions} == {1, 2}

        with pytest.raises(BadInput, match=r"users can't be compacted: log\.cleaner\.enable=false on broker 1, 2, so"):
            compact_topic(cluster.connection, "users", home=tmp_path)


def test_a_start_after_a_crash_names_what_kafka_cut_off_and_promises_nothing(cluster: LocalCluster) -> None:
    cluster.start(port=0)
    for topic in ("torn", "short"):
        make_topic(cluster.connection, topic)
        write_batches(cluster.connection, topic, batches=100)
    kill(cluster)
    half = segment(cluster, "torn-0").stat().st_size // 2
    # One log ends within a batch, the other between two: Kafka can notice only the first.
    os.truncate(segment(cluster, "torn-0"), half - 10)
    os.truncate(segment(cluster, "short-0"), half)

    again = cluster.start()

    assert (again.recovered, again.cut_off) == ((1,), ("torn-0 from offset 490 on",))
    assert again.recovery == (
        "broker 1 had not been stopped in order: Kafka found its log damaged and cut off torn-0 from offset 490 on: "
        "those records are gone"
    )
