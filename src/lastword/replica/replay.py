"""What a watcher missed, read from Kafka again."""

from __future__ import annotations

from collections.abc import Iterator

from lastword.core.errors import HistoryLost
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.bounded import refuse_unknown_partitions
from lastword.kafka.connection import Connection
from lastword.kafka.reading import log_bounds, read_log
from lastword.replica.store import Store
from lastword.replica.watching import Change


def changes_between(
    connection: Connection, store: Store, begin: Position, end: Position, *, holes_are_harmless: bool
) -> Iterator[Change]:
    """The changes from `begin` up to `end`; HistoryLost, before the first one, when a tombstone among them may be gone.

    A partition that `begin` does not name has not been read: it is given from its start.
    """
    topic = store.identity.topic
    first, last = log_bounds(connection, topic)
    refuse_unknown_partitions(topic, begin, last)
    whole_begin = Position({partition: begin.get(partition, 0) for partition in end})
    for partition, offset in whole_begin.items():
        if offset < first[partition]:
            unnamed = "" if partition in begin else f", and the position {begin} does not name that partition"
            raise HistoryLost(
                f"{topic}[{partition}] starts at {first[partition]}, so what came after {partition}:{offset} is gone"
                f"{unnamed}: start over from the rows"
            )
    if not holes_are_harmless:
        _refuse_holes(connection, topic, begin, whole_begin, end)
    return _changes(connection, store, whole_begin, end)


def _refuse_holes(connection: Connection, topic: str, asked: Position, begin: Position, end: Position) -> None:
    """A tombstone that was compacted away leaves a hole. Where every offset is there, nothing is missing."""
    upcoming = dict(begin)
    for batch in read_log(connection, topic, start=begin, stop=end):
        for record in batch:
            if record.offset != upcoming[record.partition]:
                raise _may_be_gone(topic, record.partition, upcoming[record.partition], asked)
            upcoming[record.partition] = record.offset + 1
    for partition, offset in upcoming.items():
        if offset < end[partition]:
            raise _may_be_gone(topic, partition, offset, asked)


def _may_be_gone(topic: str, partition: int, offset: int, asked: Position) -> HistoryLost:
    unnamed = "" if partition in asked else f" (the position {asked} does not name that partition)"
    return HistoryLost(
        f"{topic}[{partition}]{unnamed}: nothing is left at offset {offset}, and it is not known to be younger than "
        "delete.retention.ms, so a delete may be missing: start over from the rows"
    )


def _changes(connection: Connection, store: Store, begin: Position, end: Position) -> Iterator[Change]:
    for batch in read_log(connection, store.identity.topic, start=begin, stop=end):
        for record in batch:
            if record.key is not None:
                yield Change(shown=_shown(store, record), partition=record.partition, offset=record.offset)


def _shown(store: Store, record: Record) -> Record:
    """The record, or for a key that lives in two partitions what the table shows by now."""
    if store.split_keys and record.key is not None:
        shown = store.get(record.key)
        if shown is not None and shown.partition != record.partition:
            return shown
    return record
