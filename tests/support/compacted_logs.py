"""What the compaction tests need of a real log: topics, records at chosen offsets, and a look at what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewTopic

from lastword.core.record import Record
from lastword.kafka.connection import Connection
from lastword.kafka.live_settings import settings_now
from lastword.kafka.reading import log_bounds, read_log
from support.waiting import eventually

Pair = tuple[str, str | None]


def make_topic(connection: Connection, name: str, *, partitions: int = 1, **settings: str | int | float) -> None:
    """A compacted topic; settings in Python spelling (`segment_ms=10000`)."""
    config = {"cleanup.policy": "compact"} | {key.replace("_", "."): str(value) for key, value in settings.items()}
    # Named, because an admin client that nobody holds is closed before it has answered.
    admin = connection.admin()
    admin.create_topics([NewTopic(name, partitions, config=config)])[name].result()
    eventually(lambda: _has_partitions(connection, name, partitions))


def _has_partitions(connection: Connection, topic: str, count: int) -> bool:
    """Whether the broker shows the topic whole: for a moment after its creation it may not know it at all."""
    found = connection.reach().topics.get(topic)
    return found is not None and found.error is None and len(found.partitions) == count


def write(connection: Connection, topic: str, records: Iterable[Pair]) -> None:
    """One record after the other, acknowledged."""
    producer = connection.producer(linger_ms=0)
    for key, value in records:
        producer.produce(topic, key=key, value=value)
        assert producer.flush(30) == 0


@contextmanager
def aborted(connection: Connection, topic: str, *, records: int) -> Iterator[None]:
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
        eventually(lambda: not has_open_transaction(connection, topic))


def committed(connection: Connection, topic: str) -> list[Record]:
    """Every committed record that is in the log now."""
    return [record for batch in read_log(connection, topic) for record in batch]


def set_on_topic(connection: Connection, topic: str) -> dict[str, str]:
    """The settings that the topic itself sets, and nothing that it inherits."""
    admin = connection.admin()
    settings = settings_now(admin, topic)
    return {name: setting.value for name, setting in settings.items() if setting.on_topic is not None}


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
