"""What a consumer gives: messages as records, and what the notices among them mean."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from lastword.core.errors import PositionGone
from lastword.core.record import Headers, Record
from lastword.kafka.connection import translated

BATCH = 10_000

# For its methods by name; as the stubs have it, even a record may be without partition and offset.
MESSAGE: Any = Message

# What a broker says of a partition that is known to exist, while it is not told yet who leads it.
NO_LEADER_YET = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}

# The client looks for the coordinator of a group that we do not use: who has no right to it reads all the same.
NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED

# What comes among the records and goes again by itself: the end of a partition for now, a broker that is away.
PASSING = NO_LEADER_YET - {KafkaError.UNKNOWN_TOPIC_OR_PART} | {
    KafkaError._PARTITION_EOF,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}


def next_batch(consumer: Consumer, *, patience_s: float, batch: int = BATCH) -> list[Any]:
    """Waits for one record, then takes what is there: 10 ms latency at a trickle, full speed in bursts."""
    try:
        head = consumer.poll(patience_s)
        # A Message has a length, so a tombstone would be false: compare with None.
        return [] if head is None else [head, *consumer.consume(batch - 1, 0)]
    except KafkaException as failure:
        raise translated(failure, "reading") from None


def is_record(message: Any, topic: str) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in PASSING or error.code() == NO_GROUP:
        return False
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise PositionGone(
            f"{topic}[{message.partition()}]: the position asked for is no longer in the log "
            f"({error.str()}): read from the start, or from a later position"
        )
    raise translated(error, f"reading {topic}")


def record_of(message: Any, partition: int, offset: int) -> Record:
    headers = message.headers()
    if headers:
        return Record(message.key(), message.value(), partition, offset, message.timestamp()[1], headers_of(headers))
    return Record(message.key(), message.value(), partition, offset, message.timestamp()[1])


def headers_of(pairs: Any) -> Headers:
    """Headers as a message gives them: pairs, a dict, or None for none."""
    found = pairs.items() if isinstance(pairs, dict) else pairs or ()
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in found)
