"""The hash agrees with where a real writer puts keys."""

from __future__ import annotations

import random

from confluent_kafka import KafkaError, Message

from lastword.core.key_partition import partition_of
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic


def odd_keys() -> list[bytes]:
    chance = random.Random(20)
    binary = {chance.randbytes(1 + number % 9) for number in range(400)}
    words = {f"ключ-{number}-日本-é".encode() for number in range(60)} | {
        f"user-{number}".encode() for number in range(60)
    }
    return sorted(binary | words)[:500]


def test_five_hundred_odd_keys_are_where_the_writer_put_them(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=7)
    keys = odd_keys()
    assert len(keys) == 500
    landed: dict[bytes | None, int | None] = {}

    def note(error: KafkaError | None, record: Message) -> None:
        landed[record.key()] = record.partition()

    producer = connection.producer()
    for key in keys:
        producer.produce(topic_name, b"value", key, on_delivery=note)
    assert producer.flush(30) == 0
    assert landed == {key: partition_of(key, 7) for key in keys}
