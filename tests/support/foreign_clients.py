"""Clients of others: Kafka's console tools and kafka-python, with their defaults."""

from __future__ import annotations

import subprocess
import warnings
from typing import NamedTuple

from lastword.jvm.jars import broker_jar_lock, ensure_jars
from lastword.jvm.java import find_java
from lastword.kafka.broker.broker_process import Jvm
from lastword.kafka.client.connection import Connection
from support.command_line import JARS

with warnings.catch_warnings():
    # kafka-python loads its schemas in a way that Python 3.11 alone calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition

__all__ = [
    "ForeignRecord",
    "KafkaConsumer",
    "TopicPartition",
    "console",
    "kafka_tools",
    "properties",
    "seen_by_console_consumer",
    "seen_by_kafka_python",
]


class ForeignRecord(NamedTuple):
    """A record as a foreign client shows it."""

    key: str
    value: str | None
    partition: int


def kafka_tools() -> Jvm:
    """The broker's jars, which include Kafka's console tools, and the Java of this machine."""
    java = find_java()
    return Jvm(java=java, jars=ensure_jars(broker_jar_lock(), JARS, java, print))


def console(jvm: Jvm, main_class: str, *arguments: str, given: str = "") -> str:
    """The output of one of Kafka's console tools."""
    options = ["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    command = jvm.command(f"org.apache.kafka.tools.{main_class}", *arguments, options=options)
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def properties(flag: str, *pairs: str) -> list[str]:
    return [word for pair in pairs for word in (flag, pair)]


def seen_by_console_consumer(jvm: Jvm, connection: Connection, topic: str, count: int) -> list[ForeignRecord]:
    """The first `count` records, or all if there are fewer; the other settings are Kafka's defaults."""
    settings = properties(
        "--formatter-property",
        *("print.key=true", "print.partition=true", "key.separator=\t", "null.literal=NULL"),
    )
    printed = console(
        jvm,
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", connection.bootstrap_servers, "--topic", topic),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000", *settings),
    )
    records = [line.split("\t") for line in printed.splitlines() if line.startswith("Partition:")]
    return [
        ForeignRecord(key, None if value == "NULL" else value, int(partition.removeprefix("Partition:")))
        for partition, key, value in records
    ]


def seen_by_kafka_python(connection: Connection, topic: str, count: int) -> list[ForeignRecord]:
    """The first `count` records, or all if there are fewer; the other settings are kafka-python's defaults."""
    consumer = KafkaConsumer(
        bootstrap_servers=connection.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in connection.topic(topic).partitions])
        seen = []
        for record in consumer:
            value = None if record.value is None else record.value.decode()
            seen.append(ForeignRecord(record.key.decode(), value, record.partition))
            if len(seen) == count:
                break
        return seen
    finally:
        consumer.close()
