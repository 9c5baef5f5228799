"""What a consumer returns: messages as records, and the meaning of the notices among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from lastword.core.errors import PositionGone
from lastword.core.record import Headers, Record
from lastword.kafka.client.client_errors import translated

BATCH = 10_000

# Untyped, to call its methods by name: for the stubs even a record may lack a partition and an offset.
MESSAGE: Any = Message

# The headers of a message: pairs, or None. Not called as a method: when a name is not UTF-8, the client gives the
# pairs and, at the first call, sets an error beside them. A call from C (by partial, by map) raises it as SystemError;
# after a call from Python it would come up in some later line.
_headers: Callable[[Any], Any] = partial(MESSAGE.headers)

# The errors of a broker for a partition that exists, until the broker learns who leads the partition.
NO_LEADER_YET = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}

# The client looks for the coordinator of a group that we do not use: reading works without the right to that group.
NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED

# Notices among the records that pass by themselves: the present end of a partition, a broker that is away.
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
    try:
        pairs = _headers(message)
    except SystemError:
        pairs = _headers_with_damage(message)
    if pairs:
        return Record(message.key(), message.value(), partition, offset, message.timestamp()[1], tuple(pairs))
    return Record(message.key(), message.value(), partition, offset, message.timestamp()[1])


def headers_of(messages: list[Any]) -> list[Headers] | None:
    """The headers of each message; None where no message has any, as nearly everywhere: 30 ns for each."""
    try:
        if not any(map(MESSAGE.headers, messages)):
            return None
        return [tuple(pairs) if pairs else () for pairs in map(MESSAGE.headers, messages)]
    except SystemError:
        return [*map(_headers_with_damage, messages)]


def _headers_with_damage(message: Any) -> Headers:
    """The headers of a message that may have names that are not UTF-8: such a name is U+FFFD."""
    try:
        pairs = _headers(message)
    except SystemError:
        pairs = _headers(message)
    return tuple((_name(pair), pair[1]) for pair in pairs or ())


def _name(pair: Any) -> str:
    # Such a name is not even None: taking it out of the pair would crash the process. Only its text is safe.
    return "\ufffd" if repr(pair).startswith("(<NULL>") else str(pair[0])
