"""Reading a topic: the raw log up to a captured position, the fold of it, and following it.

Where a read ends: at the last stable offset of each partition, taken when the read starts. Arrival is judged by
what the consumer has passed (a record at or after the end, or the end of the partition), never by "last offset ==
end - 1": compaction and transaction markers leave gaps, and that test would then never be true.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.kafka.connection import Connection, translated
from lastword.kafka.murmur2 import partition_of

Progress = Callable[[int, int], None]

BATCH = 10_000
_SILENCE_S = 30
_LOOK_AGAIN_S = 5

# What a broker says of a partition that is known to exist, while it is not told yet who leads it.
_NO_LEADER_YET = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}

# What comes among the records and goes again by itself: the end of a partition for now, a broker that is away.
PASSING = _NO_LEADER_YET - {KafkaError.UNKNOWN_TOPIC_OR_PART} | {
    KafkaError._PARTITION_EOF,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}

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


@dataclass(frozen=True, kw_only=True)
class Queue:
    """How much a bulk read may hold that was fetched and not taken yet, and how much it takes at a time."""

    records: int = _BULK["queued_min_messages"]
    kbytes: int = 64 * 1024
    batch: int = BATCH

    def settings(self) -> dict[str, Any]:
        # A fetch is asked for while there is room, and comes on top of what is queued: so it is a part of it only.
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
    # Keys with live rows in more than one partition: partitions were added, or writers disagree on the partitioner.
    split_keys: int
    keyless_records: int


def log_bounds(connection: Connection, topic: str) -> tuple[Position, Position]:
    """The first offset kept and the last stable offset of every partition."""
    with _consumer(connection) as consumer:
        return _bounds(connection, consumer, topic)


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
    `progress` is told (offsets passed, offsets in all) after each batch.
    """
    with _consumer(connection, **_BULK) as consumer:
        first, last = _bounds(connection, consumer, topic)
        _refuse_unknown_partitions(topic, start or (), last)
        ends = _ends(topic, last, stop, partitions)
        span = _Span(
            begins={p: _begin(topic, p, first[p], last[p], start) for p in ends},
            ends=ends,
            from_log_start=frozenset(p for p in ends if start is None or p not in start),
        )
        for runs in _bounded(consumer, topic, span, progress):
            yield _records(runs)


def read_columns(
    connection: Connection,
    topic: str,
    *,
    start: Position,
    stop: Position,
    queue: Queue,
    progress: Progress | None = None,
) -> Iterator[list[Columns]]:
    """What `read_log` reads, for those who want millions a second: each batch as columns, a partition at a time.

    The bounds are trusted: both name the same partitions, and no offset is asked of the cluster.
    """
    with _consumer(connection, **queue.settings()) as consumer:
        # Asked only for its errors: a cluster that is away says so at once, and not after a long silence.
        connection.topic(topic, consumer)
        span = _Span(begins=dict(start), ends=dict(stop), from_log_start=frozenset())
        for runs in _bounded(consumer, topic, span, progress, queue.batch):
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

    With `key` only that key is kept, and without `all_partitions` only the partition is read where murmur2 puts it.
    """
    with _consumer(connection, **_BULK) as consumer, _no_cyclic_garbage():
        first, last = _bounds(connection, consumer, topic)
        homes = [partition_of(key, len(last))] if key is not None and not all_partitions else None
        ends = _ends(topic, last, None, homes)
        span = _Span(begins={p: first[p] for p in ends}, ends=ends, from_log_start=frozenset(ends))
        newest: dict[int, dict[bytes, Record]] = {p: {} for p in ends}
        keyless = 0
        for runs in _bounded(consumer, topic, span, progress):
            for record in _records(runs):
                if record.key is None:
                    keyless += 1
                elif record.value is None:
                    newest[record.partition].pop(record.key, None)
                elif key is None or record.key == key:
                    # Within a partition records arrive in offset order, so the last one seen is the newest.
                    newest[record.partition][record.key] = record
    rows, split_keys = _merged(newest)
    return FoldedTable(rows=rows, position=Position(ends), split_keys=split_keys, keyless_records=keyless)


def follow(connection: Connection, topic: str, *, start: Position | None = None) -> Generator[list[Record], None, None]:
    """Committed records as they arrive, from now or from `start`, without end; an empty batch is a heartbeat.

    Partitions that `start` does not name are followed from now on.
    """
    with _consumer(connection, fetch_wait_max_ms=10) as consumer:
        first, last = _bounds(connection, consumer, topic)
        if start is not None:
            _refuse_unknown_partitions(topic, start, last)
            begins = {p: _begin(topic, p, first[p], last[p], start) if p in start else last[p] for p in last}
        else:
            begins = dict(last)
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in begins.items()])
        look_again_at = time.monotonic() + _LOOK_AGAIN_S
        while True:
            messages = next_batch(consumer, patience_s=0.5)
            if time.monotonic() >= look_again_at:
                _follow_added_partitions(connection, consumer, topic, begins)
                look_again_at = time.monotonic() + _LOOK_AGAIN_S
            yield [record_of(m, m.partition(), m.offset()) for m in messages if _is_record(m, topic)]


def _follow_added_partitions(connection: Connection, consumer: Consumer, topic: str, known: dict[int, int]) -> None:
    """Takes partitions that were added since; NotFound when the topic is gone, and patience when the cluster is."""
    try:
        added = [p for p in connection.topic(topic, consumer).partitions if p not in known]
    except ClusterUnreachable:
        return
    known.update(dict.fromkeys(added, 0))
    if added:
        consumer.incremental_assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in added])


@dataclass(frozen=True, kw_only=True)
class _Span:
    """What a bounded read covers: for each partition the first offset and the one to end before."""

    begins: dict[int, int]
    ends: dict[int, int]
    # Partitions whose beginning is the log's start, wherever that is by the time of the first fetch.
    from_log_start: frozenset[int]

    def assignment(self, topic: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, p, OFFSET_BEGINNING if p in self.from_log_start else self.begins[p])
            for p in self.ends
            if self.begins[p] < self.ends[p]
        ]

    def total(self) -> int:
        return sum(max(0, self.ends[p] - self.begins[p]) for p in self.ends)


# As the stubs have it, even a record may be without partition and offset.
_Message: Any = Message

# Messages of one partition that follow each other in a batch, in offset order.
_Run = tuple[int, list[Any]]


def _bounded(
    consumer: Consumer, topic: str, span: _Span, progress: Progress | None, batch: int = BATCH
) -> Iterator[list[_Run]]:
    assigned = span.assignment(topic)
    consumer.assign(assigned)
    # For each partition not yet at its end, the offset after the last record seen.
    pending = {tp.partition: span.begins[tp.partition] for tp in assigned}
    total, heard_at = span.total(), time.monotonic()
    while pending:
        messages = next_batch(consumer, patience_s=0.2, batch=batch)
        before = dict(pending)
        runs = _runs_before_ends(messages, topic, span.ends, pending)
        if pending != before:
            heard_at = time.monotonic()
            # What is written after the end is not ours, and must not pass for a sign of life of the others.
            consumer.incremental_unassign([TopicPartition(topic, p) for p in before if p not in pending])
        elif time.monotonic() - heard_at > _SILENCE_S:
            raise ClusterUnreachable(
                f"reading {topic}: nothing came for {_SILENCE_S} s at position {Position(pending)}: "
                "is the cluster up?  lastword broker status"
            )
        if runs:
            yield runs
        if progress is not None:
            progress(total - sum(span.ends[p] - at for p, at in pending.items()), total)


def _runs_before_ends(messages: list[Any], topic: str, ends: dict[int, int], pending: dict[int, int]) -> list[_Run]:
    """The records that lie before the ends; partitions that turn out to be at their end leave `pending`."""
    # By map and groupby, which call the client's methods without a step of ours for each record.
    notices = [m for m in messages if m.error() is not None] if any(map(_Message.error, messages)) else []
    records = [m for m in messages if m.error() is None] if notices else messages
    runs = []
    for partition, group in groupby(records, _Message.partition):
        run, end = list(group), ends[partition]
        pending[partition] = run[-1].offset() + 1
        if pending[partition] > end:
            run = [m for m in run if m.offset() < end]
        if run:
            runs.append((partition, run))
    # After the records: those of a partition come before the notice of its end.
    for notice in notices:
        if not _is_record(notice, topic) and notice.offset() >= ends.get(notice.partition(), 0):
            pending.pop(notice.partition(), None)
    for partition in [p for p, at in pending.items() if at >= ends[p]]:
        del pending[partition]
    return runs


def _records(runs: list[_Run]) -> list[Record]:
    return [record_of(message, partition, message.offset()) for partition, run in runs for message in run]


def _columns(partition: int, messages: list[Any]) -> Columns:
    epoch = messages[-1].leader_epoch()
    return Columns(
        partition,
        [*map(_Message.key, messages)],
        [*map(_Message.value, messages)],
        [*map(_Message.offset, messages)],
        [*map(itemgetter(1), map(_Message.timestamp, messages))],
        -1 if epoch is None else epoch,
    )


def next_batch(consumer: Consumer, *, patience_s: float, batch: int = BATCH) -> list[Any]:
    """Waits for one record, then takes what is there: 10 ms latency at a trickle, full speed in bursts."""
    try:
        head = consumer.poll(patience_s)
        # A Message has a length, so a tombstone would be false: compare with None.
        return [] if head is None else [head, *consumer.consume(batch - 1, 0)]
    except KafkaException as failure:
        raise translated(failure, "reading") from None


def _is_record(message: Any, topic: str) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in PASSING:
        return False
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise LastwordError(
            f"{topic}[{message.partition()}]: the position asked for is no longer in the log "
            f"({error.str()}): read from the start, or from a later position"
        )
    raise translated(error, f"reading {topic}")


def record_of(message: Any, partition: int, offset: int) -> Record:
    headers = message.headers()
    if headers:
        return Record(message.key(), message.value(), partition, offset, message.timestamp()[1], _headers(headers))
    return Record(message.key(), message.value(), partition, offset, message.timestamp()[1])


def _headers(pairs: object) -> Headers:
    found = pairs.items() if isinstance(pairs, dict) else pairs
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in found)  # type: ignore[attr-defined]


def _merged(newest: dict[int, dict[bytes, Record]]) -> tuple[dict[bytes, Record], int]:
    rows: dict[bytes, Record] = {}
    for by_key in newest.values():
        rows.update(by_key)
    if len(rows) == sum(map(len, newest.values())):
        return rows, 0
    rows.clear()
    split: set[bytes] = set()
    for by_key in newest.values():
        for key, record in by_key.items():
            known = rows.get(key)
            if known is None:
                rows[key] = record
                continue
            split.add(key)
            if (record.timestamp, record.partition) > (known.timestamp, known.partition):
                rows[key] = record
    return rows, len(split)


def _bounds(connection: Connection, consumer: Consumer, topic: str) -> tuple[Position, Position]:
    first, last = {}, {}
    for partition in sorted(connection.topic(topic, consumer).partitions):
        first[partition], last[partition] = _watermarks(connection, consumer, TopicPartition(topic, partition))
    return Position(first), Position(last)


def _watermarks(connection: Connection, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    give_up_at = time.monotonic() + connection.patience_s
    while True:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(
                partition, timeout=max(0.1, give_up_at - time.monotonic()), cached=False
            )
            return found
        except KafkaException as failure:
            # A broker that has just come back is told a moment later that it leads the partition.
            if failure.args[0].code() not in _NO_LEADER_YET or time.monotonic() > give_up_at:
                raise translated(failure, f"{partition.topic}[{partition.partition}]") from None
            time.sleep(0.05)


def _ends(topic: str, last: Position, stop: Position | None, partitions: Iterable[int] | None) -> dict[int, int]:
    chosen = set(last) if partitions is None else set(partitions)
    _refuse_unknown_partitions(topic, chosen, last)
    if stop is None:
        return {p: last[p] for p in sorted(chosen)}
    _refuse_unknown_partitions(topic, stop, last)
    return {p: min(stop[p], last[p]) for p in sorted(chosen) if p in stop}


def _begin(topic: str, partition: int, first: int, end: int, start: Position | None) -> int:
    if start is None or partition not in start:
        return first
    asked = start[partition]
    if asked < first:
        raise BadInput(
            f"{topic}[{partition}] starts at {first}, so the position {partition}:{asked} is gone: "
            f"start at {partition}:{first} or later"
        )
    if asked > end:
        raise BadInput(
            f"{topic}[{partition}] ends at {end}, so the position {partition}:{asked} is not there yet: "
            f"start at {partition}:{end} or earlier"
        )
    return asked


def _refuse_unknown_partitions(topic: str, asked: Iterable[int], known: Position) -> None:
    for partition in asked:
        if partition not in known:
            raise BadInput(f"{topic} has no partition {partition}: it has {len(known)}, numbered from 0")


@contextmanager
def _consumer(connection: Connection, **settings: object) -> Iterator[Consumer]:
    consumer = connection.consumer(**settings)
    try:
        yield consumer
    finally:
        with suppress(KafkaException):
            consumer.close()


@contextmanager
def _no_cyclic_garbage() -> Iterator[None]:
    """Collector off: a fold makes millions of tuples and not one cycle, and scanning them costs a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
