"""Reads with an end: from one offset of each partition up to another.

Where a read ends: at the last stable offset of each partition, taken when the read starts. Arrival is judged by
what the consumer has passed (a record at or after the end, or the end of the partition), never by "last offset ==
end - 1": compaction and transaction markers leave gaps, and that test would then never be true.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lastword.core.errors import BadInput, ClusterUnreachable
from lastword.core.position import Position
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.messages import BATCH, MESSAGE, NO_LEADER_YET, is_record, next_batch

Progress = Callable[[int, int], None]

# A read during which nothing comes for this long has lost the cluster.
SILENCE_S = 30

# Messages of one partition that follow each other in a batch, in offset order.
Run = tuple[int, list[Any]]


@dataclass(frozen=True, kw_only=True)
class ReadBounds:
    """The part of a log that a bounded read covers: by partition the first offset, and the offset after the last."""

    begins: dict[int, int]
    ends: dict[int, int]
    # Partitions that are read from the log's start, wherever the start is at the first fetch.
    from_log_start: frozenset[int]

    def assignment(self, topic: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, p, OFFSET_BEGINNING if p in self.from_log_start else self.begins[p])
            for p in self.ends
            if self.begins[p] < self.ends[p]
        ]

    def total(self) -> int:
        return sum(max(0, self.ends[p] - self.begins[p]) for p in self.ends)


def bounded(
    consumer: Consumer, topic: str, span: ReadBounds, progress: Progress | None, batch: int = BATCH
) -> Iterator[list[Run]]:
    assigned, total = span.assignment(topic), span.total()
    if progress is not None:
        progress(0, total)
    consumer.assign(assigned)
    # For each partition not yet at its end, the offset after the last record seen.
    pending = {tp.partition: span.begins[tp.partition] for tp in assigned}
    last_progress_at = time.monotonic()
    while pending:
        messages = next_batch(consumer, patience_s=0.2, batch=batch)
        before = dict(pending)
        runs = _runs_before_ends(messages, topic, span.ends, pending)
        if pending != before:
            last_progress_at = time.monotonic()
            # Records after the end are not ours, and must not pass for progress of the other partitions.
            consumer.incremental_unassign([TopicPartition(topic, p) for p in before if p not in pending])
        elif time.monotonic() - last_progress_at > SILENCE_S:
            raise ClusterUnreachable(
                f"reading {topic}: nothing came for {SILENCE_S} s at position {Position(pending)}: "
                "is the cluster up?  lastword broker status"
            )
        if runs:
            yield runs
        if progress is not None:
            progress(total - sum(span.ends[p] - at for p, at in pending.items()), total)


def _runs_before_ends(messages: list[Any], topic: str, ends: dict[int, int], pending: dict[int, int]) -> list[Run]:
    """The records before the ends; partitions that have reached their end are removed from `pending`."""
    # With map and groupby usually no line of Python runs for each record.
    notices = [m for m in messages if m.error() is not None] if any(map(MESSAGE.error, messages)) else []
    records = [m for m in messages if m.error() is None] if notices else messages
    runs = []
    for partition, group in groupby(records, MESSAGE.partition):
        run, end = list(group), ends[partition]
        pending[partition] = run[-1].offset() + 1
        if pending[partition] > end:
            run = [m for m in run if m.offset() < end]
        if run:
            runs.append((partition, run))
    # After the records: the notice of a partition's end comes after its records.
    for notice in notices:
        is_end = not is_record(notice, topic) and notice.error().code() == KafkaError._PARTITION_EOF
        if is_end and notice.offset() >= ends.get(notice.partition(), 0):
            pending.pop(notice.partition(), None)
    for partition in [p for p, at in pending.items() if at >= ends[p]]:
        del pending[partition]
    return runs


def bounds(connection: Connection, consumer: Consumer, topic: str) -> tuple[Position, Position]:
    first, last = {}, {}
    for partition in sorted(connection.topic(topic, consumer).partitions):
        first[partition], last[partition] = watermarks(connection, consumer, TopicPartition(topic, partition))
    return Position(first), Position(last)


def watermarks(connection: Connection, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    give_up_at = time.monotonic() + connection.patience_s
    while True:
        try:
            low_and_high: tuple[int, int] = consumer.get_watermark_offsets(
                partition, timeout=max(0.1, give_up_at - time.monotonic()), cached=False
            )
            return low_and_high
        except KafkaException as failure:
            # A broker that has just come back learns a moment later that it leads the partition.
            if failure.args[0].code() not in NO_LEADER_YET or time.monotonic() > give_up_at:
                raise translated(failure, f"{partition.topic}[{partition.partition}]") from None
            time.sleep(0.05)


def ends_of(topic: str, last: Position, stop: Position | None, partitions: Iterable[int] | None) -> dict[int, int]:
    chosen = set(last) if partitions is None else set(partitions)
    refuse_unknown_partitions(topic, chosen, last)
    if stop is None:
        return {p: last[p] for p in sorted(chosen)}
    refuse_unknown_partitions(topic, stop, last)
    return {p: min(stop[p], last[p]) for p in sorted(chosen) if p in stop}


def begin_of(topic: str, partition: int, first: int, end: int, start: Position | None) -> int:
    if start is None or partition not in start:
        return first
    requested = start[partition]
    if requested < first:
        raise BadInput(
            f"{topic}[{partition}] starts at {first}, so the position {partition}:{requested} is gone: "
            f"start at {partition}:{first} or later"
        )
    if requested > end:
        raise BadInput(
            f"{topic}[{partition}] ends at {end}, so the position {partition}:{requested} is not there yet: "
            f"start at {partition}:{end} or earlier"
        )
    return requested


def refuse_unknown_partitions(topic: str, requested: Iterable[int], known: Position) -> None:
    for partition in requested:
        if partition not in known:
            raise BadInput(f"{topic} has no partition {partition}: it has {len(known)}, numbered from 0")
