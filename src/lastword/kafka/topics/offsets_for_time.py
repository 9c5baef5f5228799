"""A time as a position: the offsets of a topic at a moment."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition

from lastword.core.position import Position
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection


def position_at(connection: Connection, topic: str, moment_ms: int, last: Position) -> Position:
    """For each partition of `last` the offset of its first record at or after the moment, else that of `last`.

    Decided by the timestamps of the records, which their producers chose.
    """
    consumer = connection.consumer()
    try:
        moments = [TopicPartition(topic, partition, moment_ms) for partition in last]
        places = consumer.offsets_for_times(moments, timeout=connection.patience_s)
    except KafkaException as failure:
        raise translated(failure, topic) from None
    finally:
        consumer.close()
    for place in places:
        if place.error is not None:
            raise translated(place.error, f"{topic}[{place.partition}]")
    offsets = {place.partition: place.offset for place in places}
    # A negative offset means that no record is that late.
    return Position({p: min(offset, last[p]) if offset >= 0 else last[p] for p, offset in offsets.items()})
