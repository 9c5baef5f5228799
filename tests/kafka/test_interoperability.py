"""Kafka's console tools and kafka-python read what lastword writes and the other way round, in the same partitions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from lastword.kafka.broker.broker_process import Jvm
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.foreign_clients import (
    console,
    kafka_tools,
    properties,
    seen_by_console_consumer,
    seen_by_kafka_python,
)

# Other clients are told an address alone.
pytestmark = pytest.mark.open

PARTITIONS = 5
KEYS = [*(f"user-{n}" for n in range(40)), "é", "日本", "Ω-1", "🦆", "ключ", "ñandú", "a b", "x" * 200, "0", "ÅÄÖ"]
# key -> (value, partition)
Rows = dict[str, tuple[Any, int]]

with warnings.catch_warnings():
    # kafka-python loads its schemas in a way that Python 3.11 alone calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer


@pytest.fixture(scope="session")
def jvm() -> Jvm:
    return kafka_tools()


def lines_of(values: dict[str, str]) -> str:
    return "".join(f"{key}\t{value}\n" for key, value in values.items())


def partitions_by_java(jvm: Jvm, connection: Connection, topic: str) -> None:
    given = lines_of({key: f'"java {key}"' for key in KEYS} | {"user-0": "GONE"})
    settings = properties("--reader-property", "parse.key=true", "key.separator=\t", "null.marker=GONE")
    console(
        jvm,
        "ConsoleProducer",
        *("--bootstrap-server", connection.bootstrap_servers, "--topic", topic, *settings),
        given=given,
    )


def rows_seen_by_lastword(lastword: CommandLine, topic: str) -> Rows:
    rows = [json.loads(line) for line in lastword("scan", topic, "--json").splitlines()]
    return {row["key"]: (row["value"], row["partition"]) for row in rows}


def test_others_read_what_lastword_put_and_see_a_delete_as_a_tombstone(
    jvm: Jvm, connection: Connection, lastword: CommandLine, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    acks: Sequence[tuple[str, str, str | None]] = [
        (lastword("put", topic_name, "日本", '{"n": 1}', "--json"), "日本", '{"n": 1}'),
        (lastword("put", topic_name, "user-1", "null", "--json"), "user-1", "null"),
        (lastword("delete", topic_name, "user-1", "--json"), "user-1", None),
    ]
    written = sorted(((key, value, json.loads(ack)["partition"]) for ack, key, value in acks), key=str)

    assert sorted(seen_by_console_consumer(jvm, connection, topic_name, 3), key=str) == written
    assert sorted(seen_by_kafka_python(connection, topic_name, 3), key=str) == written


def test_lastword_reads_what_others_wrote_and_all_agree_where_a_key_lives(
    jvm: Jvm, connection: Connection, lastword: CommandLine, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    lastword("load", topic_name, "-", "--separator", "\t", given=lines_of(dict.fromkeys(KEYS, "1")))
    by_lastword = rows_seen_by_lastword(lastword, topic_name)
    assert {key: value for key, (value, _) in by_lastword.items()} == dict.fromkeys(KEYS, 1)
    places = {key: partition for key, (_, partition) in by_lastword.items()}
    assert set(places.values()) == set(range(PARTITIONS))

    partitions_by_java(jvm, connection, topic_name)
    expected = {key: (f"java {key}", places[key]) for key in KEYS if key != "user-0"}
    assert rows_seen_by_lastword(lastword, topic_name) == expected
    assert lastword.run("get", topic_name, "user-0").returncode == 1

    producer = KafkaProducer(bootstrap_servers=connection.bootstrap_servers)
    sent = {key: producer.send(topic_name, key=key.encode(), value=f'"python {key}"'.encode()) for key in KEYS}
    assert {key: future.get(30).partition for key, future in sent.items()} == places
    producer.send(topic_name, key=b"user-1", value=None).get(30)
    producer.close()
    expected = {key: (f"python {key}", places[key]) for key in KEYS if key != "user-1"}
    assert rows_seen_by_lastword(lastword, topic_name) == expected
