"""Reading a topic: the raw log up to a captured position, the fold of it, and following it."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lastword.core.errors import ClusterUnreachable
from lastword.core.key_partition import partition_of
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.core.split_keys import merged
from lastword.kafka.client.bounded_read import (
    SILENCE_S,
    Progress,
    ReadBounds,
    Run,
    begin_of,
    bounded,
    bounds,
    ends_of,
    refuse_unknown_partitions,
    watermarks,
)
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.messages import BATCH, MESSAGE, headers_of, is_record, next_batch, record_of

_LOOK_AGAIN_S = 5.0

# Large fetches and a deep queue: a bounded read wants throughput, and it is over soon.
_BULK: dict[str, Any] = {
    "enable_partition_eof": True,
    "queued_min_messages": 200_000,
    "fetch_message_max_bytes": 4 * 1024 * 1024,
    # A full queue stops fetching for this long, 1 s by default: by then we have emptied it and wait for nothing.
    "fetch_queue_backoff_ms": 5,
}


class Columns(NamedTuple):
    """Records of one partition in offset order, as one list for each field: no object is made for a record."""

    partition: int
    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamps: list[int]
    # Of the last record; -1 if the broker did not say.
    leader_epoch: int
    # Of each record; None where no record of the run has any, as nearly everywhere.
    headers: list[Headers] | None = None


@dataclass(frozen=True, kw_only=True)
class ReadQueue:
    """How many fetched records a bulk read may hold, and how many it takes at a time."""

    records: int = _BULK["queued_min_messages"]
    kbytes: int = 64 * 1024
    batch: int = BATCH

    def settings(self) -> dict[str, Any]:
        # A fetch begins while the queue has room, and may then exceed it: so a fetch is small beside the queue.
        fetch_bytes = min(_BULK["fetch_message_max_bytes"], max(64 * 1024, self.kbytes * 1024 // 32))
        return {
            **_BULK,
            "queued_min_messages": self.records,
            "queued_max_messages_kbytes": self.kbytes,
            "fetch_message_max_bytes": fetch_bytes,
        }


@dataclass(frozen=True, kw_only=True)
class FoldedTable:
    """A topic folded at a position: the newest record of each live key."""

    rows: dict[bytes, Record]
    position: Position
    # Keys in more than one partition: with live rows there, and with a later tombstone beside the row (`split_keys`).
    split_keys: frozenset[bytes]
    deleted_elsewhere: frozenset[bytes]
    keyless_records: int


def log_bounds(connection: Connection, topic: str) -> tuple[Position, Position]:
    """The first offset and the last stable offset of every partition."""
    with _consumer(connection) as consumer:
        return bounds(connection, consumer, topic)


def read_log(
    connection: Connection,
    topic: str,
    *,
    partitions: Iterable[int] | None = None,
    start: Position | None = None,
    stop: Position | None = None,
    progress: Progress | None = None,
) -> Iterator[list[Record]]:
    """The committed records from `start` (or the log's start) up to `stop` (or the last stable offsets), in batches.

    Within a partition in offset order. Partitions that `start` does not name are read from their first record.
    `progress` gets (offsets passed, offsets in all) before the first fetch and after each batch.
    """
    with _consumer(connection, **_BULK) as consumer:
        first, last = bounds(connection, consumer, topic)
        refuse_unknown_partitions(topic, start or (), last)
        ends = ends_of(topic, last, stop, partitions)
        span = ReadBounds(
            begins={p: begin_of(topic, p, first[p], last[p], start) for p in ends},
            ends=ends,
            from_log_start=frozenset(p for p in ends if start is None or p not in start),
        )
        for runs in bounded(consumer, topic, span, progress):
            yield _records(runs)


def read_to_end(
    connection: Connection, topic: str, partition: int, *, start: int | None = None
) -> Generator[Record, None, None]:
    """The committed records of one partition, from `start` or its first record to its end: quick for few records.

    PositionGone when the log does not have that offset.
    """
    message: Any
    with _consumer(connection, enable_partition_eof=True, fetch_wait_max_ms=10) as consumer:
        # First a connection that stays: librdkafka drops the first connection once it knows the brokers of the cluster.
        # A request on it is lost, and is sent again only after 0.7 s.
        connection.reach(consumer)
        # A new leader may send an earlier end with a fetch than the end that it answers here.
        first, end = watermarks(connection, consumer, TopicPartition(topic, partition))
        consumer.assign([TopicPartition(topic, partition, first if start is None else start)])
        while True:
            message = consumer.poll(SILENCE_S)
            if message is None:
                raise ClusterUnreachable(
                    f"reading {topic}[{partition}]: nothing came for {SILENCE_S} s: "
                    "is the cluster up?  lastword broker status"
                )
            if is_record(message, topic):
                yield record_of(message, partition, message.offset())
            elif message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                return


def read_columns(
    connection: Connection,
    topic: str,
    *,
    start: Position,
    stop: Position,
    queue: ReadQueue,
    progress: Progress | None = None,
) -> Iterator[list[Columns]]:
    """What `read_log` reads, for millions of records a second: each batch as columns, a partition at a time.

    The bounds are not checked: both must name the same partitions, and offsets that the log has.
    """
    with _consumer(connection, **queue.settings()) as consumer:
        # Only for its errors: a cluster that is away shows at once, and not after a long silence.
        connection.topic(topic, consumer)
        span = ReadBounds(begins=dict(start), ends=dict(stop), from_log_start=frozenset())
        for runs in bounded(consumer, topic, span, progress, queue.batch):
            yield [_columns(partition, messages) for partition, messages in runs]


def fold_topic(
    connection: Connection,
    topic: str,
    *,
    key: bytes | None = None,
    all_partitions: bool = True,
    progress: Progress | None = None,
) -> FoldedTable:
    """The table at the last stable offsets, in memory.

    With `key` only that key is folded; without `all_partitions` only the partition is read where murmur2 puts the key.
    Not `core.fold`: a topic may have millions of records, and each partition arrives in offset order. So no offsets are
    compared, and a topic with one partition keeps no tombstones. `core.split_keys` breaks ties, as in every fold.
    """
    with _consumer(connection, **_BULK) as consumer, no_cyclic_garbage():
        first, last = bounds(connection, consumer, topic)
        homes = [partition_of(key, len(last))] if key is not None and not all_partitions else None
        ends = ends_of(topic, last, None, homes)
        span = ReadBounds(begins={p: first[p] for p in ends}, ends=ends, from_log_start=frozenset(ends))
        newest: dict[int, dict[bytes, Record]] = {p: {} for p in ends}
        keyless = 0
        for runs in bounded(consumer, topic, span, progress):
            for record in _records(runs):
                if record.key is None:
                    keyless += 1
                elif record.value is None and len(newest) == 1:
                    newest[record.partition].pop(record.key, None)
                elif key is None or record.key == key:
                    # Within a partition records arrive in offset order, so the last one is the newest. Tombstones stay
                    # until the end: in another partition the key may have a row.
                    newest[record.partition][record.key] = record
    rows, split, deleted = merged(newest)
    return FoldedTable(
        rows=rows,
        position=Position(ends),
        split_keys=split,
        deleted_elsewhere=deleted,
        keyless_records=keyless,
    )


def follow(
    connection: Connection, topic: str, *, start: Position | None = None, look_again_s: float = _LOOK_AGAIN_S
) -> Generator[list[Record], None, None]:
    """Committed records as they arrive, from now or from `start`, without end; an empty batch is a heartbeat.

    Partitions that `start` does not name are followed from now on. Every `look_again_s` the topic is looked at, for
    partitions that were added.
    """
    with _consumer(connection, fetch_wait_max_ms=100) as consumer:
        first, last = bounds(connection, consumer, topic)
        if start is not None:
            refuse_unknown_partitions(topic, start, last)
            begins = {p: begin_of(topic, p, first[p], last[p], start) if p in start else last[p] for p in last}
        else:
            begins = dict(last)
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in begins.items()])
        look_again_at = time.monotonic() + look_again_s
        while True:
            messages = next_batch(consumer, patience_s=0.5)
            if time.monotonic() >= look_again_at:
                _follow_added_partitions(connection, consumer, topic, begins)
                look_again_at = time.monotonic() + look_again_s
            yield [record_of(m, m.partition(), m.offset()) for m in messages if is_record(m, topic)]


def _follow_added_partitions(connection: Connection, consumer: Consumer, topic: str, known: dict[int, int]) -> None:
    """Follows partitions that were added; NotFound when the topic is gone, nothing while the cluster is away."""
    try:
        added = [p for p in connection.topic(topic, consumer).partitions if p not in known]
    except ClusterUnreachable:
        return
    known.update(dict.fromkeys(added, 0))
    if added:
        consumer.incremental_assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in added])


def _records(runs: list[Run]) -> list[Record]:
    """The messages as records. With map no line of Python runs for each message."""
    records: list[Record] = []
    for partition, messages in runs:
        keys, values = map(MESSAGE.key, messages), map(MESSAGE.value, messages)
        offsets, timestamps = map(MESSAGE.offset, messages), map(itemgetter(1), map(MESSAGE.timestamp, messages))
        headers = headers_of(messages)
        more = () if headers is None else (headers,)
        records.extend(map(Record, keys, values, repeat(partition), offsets, timestamps, *more))
    return records


def _columns(partition: int, messages: list[Any]) -> Columns:
    epoch = messages[-1].leader_epoch()
    return Columns(
        partition,
        [*map(MESSAGE.key, messages)],
        [*map(MESSAGE.value, messages)],
        [*map(MESSAGE.offset, messages)],
        [*map(itemgetter(1), map(MESSAGE.timestamp, messages))],
        -1 if epoch is None else epoch,
        headers_of(messages),
    )


@contextmanager
def _consumer(connection: Connection, **settings: object) -> Iterator[Consumer]:
    consumer = connection.consumer(**settings)
    try:
        yield consumer
    finally:
        with suppress(KafkaException):
            consumer.close()


@contextmanager
def no_cyclic_garbage() -> Iterator[None]:
    """Turns the garbage collector off, a third of the time: a fold makes millions of tuples and not one cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
