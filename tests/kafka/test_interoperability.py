"""Kafka's console tools and kafka-python read what lastword writes and the other way round, in the same partitions."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from lastword.kafka.broker_process import Jvm
from lastword.kafka.connection import Connection
from lastword.kafka.jars import broker_lock, ensure_jars
from lastword.kafka.java import find_java
from lastword.kafka.topics import create_topic
from support.command_line import JARS, CommandLine

# Other clients are told an address alone.
pytestmark = pytest.mark.open

PARTITIONS = 5
KEYS = [*(f"user-{n}" for n in range(40)), "é", "日本", "Ω-1", "🦆", "ключ", "ñandú", "a b", "x" * 200, "0", "ÅÄÖ"]
# key -> (value, partition)
Rows = dict[str, tuple[Any, int]]

with warnings.catch_warnings():
    # kafka-python loads its schemas in a way that Python 3.11 alone calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition


@pytest.fixture(scope="session")
def jvm() -> Jvm:
    java = find_java()
    return Jvm(java=java, jars=ensure_jars(broker_lock(), JARS, java, print))


def console(jvm: Jvm, main_class: str, *arguments: str, given: str = "") -> str:
    options = ["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    command = jvm.command(f"org.apache.kafka.tools.{main_class}", *arguments, options=options)
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def properties(flag: str, *pairs: str) -> list[str]:
    return [word for pair in pairs for word in (flag, pair)]


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


def records_seen_by_kafka_python(connection: Connection, topic: str) -> list[tuple[str, str | None, int]]:
    consumer = KafkaConsumer(
        bootstrap_servers=connection.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=2_000
    )
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        return [
            (record.key.decode(), None if record.value is None else record.value.decode(), record.partition)
            for record in consumer
        ]
    finally:
        consumer.close()


def records_seen_by_java(jvm: Jvm, connection: Connection, topic: str, count: int) -> list[tuple[str, str | None, int]]:
    settings = properties(
        "--formatter-property",
        *("print.key=true", "print.partition=true", "key.separator=\t", "null.literal=NULL"),
    )
    shown = console(
        jvm,
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", connection.bootstrap_servers, "--topic", topic),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000", *settings),
    )
    records = [line.split("\t") for line in shown.splitlines() if line.startswith("Partition:")]
    return [
        (key, None if value == "NULL" else value, int(partition.removeprefix("Partition:")))
        for partition, key, value in records
    ]


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

    assert sorted(records_seen_by_java(jvm, connection, topic_name, 3), key=str) == written
    assert sorted(records_seen_by_kafka_python(connection, topic_name), key=str) == written


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
