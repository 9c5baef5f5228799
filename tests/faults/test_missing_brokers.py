"""A broker that is away: a write that can't be acknowledged names the cause, however it was sent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from lastword.core.errors import ClusterUnreachable, NotEnoughReplicas
from lastword.core.key_partition import partition_of
from lastword.core.row_json import Write
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import answer
from lastword.kafka.client.loading import LoadStopped, load
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.write_failures import WriteFailures
from lastword.kafka.client.writing import Ack, Writer
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from support.command_line import JARS
from support.service_calls import ask, served_table, service_of
from support.waiting import eventually

# For a write that can't be acknowledged; everything that has to succeed has a minute.
_PATIENCE_S = 3.0
_ENOUGH_S = 60.0
TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)
# Nothing listens on this port.
NOBODY = Connection(bootstrap_servers="127.0.0.1:1")


@pytest.fixture(scope="module")
def two_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Two brokers run of three. `all` has to be on three, and `one` has a partition on each broker alone."""
    folder = tmp_path_factory.mktemp("three")
    with LocalCluster(name="three", folder=folder, jars=JARS, owned=True) as cluster:
        cluster.start(port=0, brokers=3)
        connection = cluster.connection
        for name in ("all", "lowered"):
            create_topic(connection, name, partitions=1, replication=3, settings={"min.insync.replicas": "3"})
        create_topic(connection, "one", partitions=3, replication=1)
        with Writer(connection, "all") as writer:
            writer.write(b"a", b"1")
        # A new leader that may not take writes does not tell its offsets either, so the leader stays.
        away = 3 if connection.topic("all").partitions[0].leader != 3 else 2
        pid = cluster.status()[away - 1].pid
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        # A broker that is about to stop takes questions and leaves them without an answer.
        eventually(lambda: cluster.status()[away - 1].pid is None, within_s=_ENOUGH_S)
        eventually(lambda: len(connection.topic("all").partitions[0].isrs) == 2, within_s=_ENOUGH_S)
        eventually(lambda: -1 in leaders(connection), within_s=_ENOUGH_S)
        yield replace(connection, patience_s=_ENOUGH_S)


def leaders(connection: Connection) -> list[int]:
    """By partition; -1 for none."""
    return [partition.leader for _, partition in sorted(connection.topic("one").partitions.items())]


MISSING = (
    r"writing to all: NotEnoughReplicas: partition 0 has 2 in-sync replicas \(brokers \d, \d\), "
    r"min\.insync\.replicas is 3: start broker [23], or lower it"
)


def test_a_write_names_the_replicas_that_are_missing(two_of_three: Connection) -> None:
    with Writer(two_of_three, "all", patience_s=_PATIENCE_S) as writer:
        with pytest.raises(NotEnoughReplicas, match=MISSING):
            writer.write(b"b", b"2")
        outcomes = writer.write_all([Write(b"b", b"2"), Write(b"c", b"3")])
    assert [type(outcome) for outcome in outcomes] == [NotEnoughReplicas] * 2


def test_a_load_names_the_replicas_that_are_missing(two_of_three: Connection) -> None:
    with pytest.raises(LoadStopped, match="NotEnoughReplicas: partition 0 has 2 in-sync replicas") as stopped:
        load(two_of_three, "all", [Write(b"b", b"2")], patience_s=_PATIENCE_S)
    assert type(stopped.value.cause) is NotEnoughReplicas


def test_http_names_the_missing_replicas_and_no_address(two_of_three: Connection, tmp_path: Path) -> None:
    table = served_table(two_of_three, "all", tmp_path, patience_s=_PATIENCE_S)
    service = service_of(table)
    try:
        told = ask(service, "/tables/users/rows/b", "PUT", b"2", host="localhost")
        assert (told.status, told.code) == (503, "not_enough_replicas")
        assert "NotEnoughReplicas" in told.json["error"]["message"]
    finally:
        service.close()
        table.writes.close(5)
        table.replica.close()


def test_a_partition_without_a_leader_is_named(two_of_three: Connection) -> None:
    lost = leaders(two_of_three).index(-1)
    key = next(key for key in map(str.encode, "abcdefghijklmnop") if partition_of(key, 3) == lost)
    named = rf"partition {lost} has no leader \(replicas on brokers [23]\)"
    with Writer(two_of_three, "one", patience_s=_PATIENCE_S) as writer, pytest.raises(ClusterUnreachable, match=named):
        writer.write(key, b"1")


def test_what_the_message_advises_helps(two_of_three: Connection) -> None:
    advice = r"topic alter lowered --set min\.insync\.replicas=2"
    with (
        Writer(two_of_three, "lowered", patience_s=_PATIENCE_S) as writer,
        pytest.raises(NotEnoughReplicas, match=advice),
    ):
        writer.write(b"a", b"1")
    alter_topic(two_of_three, "lowered", settings={"min.insync.replicas": "2"})
    with Writer(two_of_three, "lowered", patience_s=_ENOUGH_S) as writer:
        assert isinstance(writer.write(b"a", b"1"), Ack)


def test_the_cluster_is_asked_once_for_all_the_writes_of_a_batch(two_of_three: Connection) -> None:
    same = SameTopic(two_of_three, "one", patience_s=_ENOUGH_S)
    asked: list[Future[Any]] = []

    def answered(future: Future[Any]) -> Any:
        asked.append(future)
        return same.answered(future)

    lost = leaders(two_of_three).index(-1)
    failures = WriteFailures(same.admin, "one", answered)
    told = [str(failures.of(TIMED_OUT, "writing to one", partition)) for partition in [0, 1, 2] * 20]
    assert [f"partition {lost} has no leader" in each for each in told] == [number == lost for number in [0, 1, 2] * 20]
    # For the partitions, and for the settings.
    assert len(asked) == 2


def test_a_cluster_that_does_not_answer_is_asked_once() -> None:
    asked: list[Future[Any]] = []

    def answered(future: Future[Any]) -> Any:
        asked.append(future)
        return answer(future, "writing to users")

    failures = WriteFailures(NOBODY.admin(), "users", answered)
    told = {str(failures.of(TIMED_OUT, "writing to users", partition)) for partition in range(50)}
    assert (told, len(asked)) == ({str(translated(TIMED_OUT, "writing to users"))}, 1)


def test_whoever_gives_up_does_not_wait_for_the_cause(two_of_three: Connection) -> None:
    same = SameTopic(two_of_three, "all", patience_s=_ENOUGH_S)
    same.give_up()
    told = WriteFailures(same.admin, "all", same.answered).of(TIMED_OUT, "writing to all", 0)
    assert str(told) == str(translated(TIMED_OUT, "writing to all"))


def test_the_cause_is_named_for_a_record_that_has_no_partition_yet(two_of_three: Connection) -> None:
    messages: list[Any] = []
    producer = NOBODY.producer(on_delivery=lambda _, message: messages.append(message))
    producer.produce("one", b"1", b"a")
    producer.purge()
    producer.flush(_ENOUGH_S)
    assert [message.partition() for message in messages] == [None]
    same = SameTopic(two_of_three, "one", patience_s=_ENOUGH_S)
    failures = WriteFailures(same.admin, "one", same.answered)
    assert "has no leader" in str(failures.of(TIMED_OUT, "writing to one", messages[0].partition()))
