"""Real logs for the compaction tests: topics, records at chosen offsets, and the records in the log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import KafkaError, TopicPartition

from lastword.core.record import Record
from lastword.kafka.client.admin_types import NewTopic
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.client.reading import log_bounds, read_log
from support.waiting import eventually

Pair = tuple[str, str | None]

# Scenario A: thirteen records about ten users.
THIRTEEN_PROFILES: list[Pair] = [
    *(("user-1", "v1"), ("user-2", "v1"), ("user-3", "v1"), ("user-4", "v1"), ("user-5", "v1")),
    *(("user-1", "v2"), ("user-2", "v2"), ("user-1", "v3")),
    *(("user-6", "v1"), ("user-7", "v1"), ("user-8", "v1"), ("user-9", "v1"), ("user-10", "v1")),
]


def make_topic(connection: Connection, name: str, *, partitions: int = 1, **settings: str | int | float) -> None:
    """A compacted topic; settings in Python spelling (`segment_ms=10000`)."""
    config = {"cleanup.policy": "compact"} | {key.replace("_", "."): str(value) for key, value in settings.items()}
    # In a variable: an admin client without a reference is closed before it has answered.
    admin = connection.admin()
    admin.create_topics([NewTopic(name, partitions, config=config)])[name].result()
    eventually(lambda: _has_partitions(connection, name, partitions))


def _has_partitions(connection: Connection, topic: str, count: int) -> bool:
    """Whether the broker shows all partitions: just after the creation it may not know the topic."""
    described = connection.reach().topics.get(topic)
    return described is not None and described.error is None and len(described.partitions) == count


def write(connection: Connection, topic: str, records: Iterable[Pair]) -> None:
    """One record after the other, acknowledged."""
    producer = connection.producer(linger_ms=0)
    for key, value in records:
        producer.produce(topic, key=key, value=value)
        assert producer.flush(30) == 0


@contextmanager
def aborted_transaction(connection: Connection, topic: str, *, records: int) -> Iterator[None]:
    """A transaction on partition 0 that is open inside the block and aborted after it: its marker takes one offset."""
    producer = connection.producer(transactional_id=f"test-{uuid4()}")
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(records):
        producer.produce(topic, key="never", value="committed", partition=0)
    assert producer.flush(30) == 0
    try:
        yield
    finally:
        producer.abort_transaction(30)
        wait_for_markers(connection, topic)


def committed(connection: Connection, topic: str) -> list[Record]:
    """Every committed record that is in the log now."""
    return [record for batch in read_log(connection, topic) for record in batch]


def uncommitted(connection: Connection, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of every record in the log now, aborted ones included, as most other readers see them."""
    consumer = connection.consumer(isolation_level="read_uncommitted", enable_partition_eof=True)
    try:
        pending = set(connection.topic(topic).partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in pending])
        records = []
        give_up_at = time.monotonic() + 60
        while pending:
            assert time.monotonic() < give_up_at, f"{topic}: partitions {pending} are not read to their end after 60 s"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                records.append((message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                pending.discard(message.partition())
        return records
    finally:
        consumer.close()


def set_on_topic(connection: Connection, topic: str) -> dict[str, str]:
    """The settings that are set on the topic, without inherited ones."""
    admin = connection.admin()
    settings = settings_now(admin, topic)
    return {name: setting.value for name, setting in settings.items() if setting.on_topic is not None}


def wait_for_markers(connection: Connection, topic: str, *, within_s: float = 60) -> None:
    """Waits until no transaction of the topic is open.

    Kafka acknowledges the end of a transaction before its markers are in the log. Until they are, readers of committed
    data miss its records. A test that compares committed with readable records waits for the markers.
    """
    eventually(lambda: not has_open_transaction(connection, topic), within_s=within_s)


def has_open_transaction(connection: Connection, topic: str) -> bool:
    """Whether the last stable offset of a partition is below its high watermark."""
    stable = log_bounds(connection, topic)[1]
    consumer = connection.consumer(isolation_level="read_uncommitted")
    try:
        return any(
            consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] > end for p, end in stable.items()
        )
    finally:
        consumer.close()
