"""The changes that a watcher missed, read from Kafka again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, HistoryLost
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.bounded_read import refuse_unknown_partitions
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.replica.store.store import Store
from lastword.replica.watching import Change


class SweptHere(HistoryLost):
    """A sweep removed rows at this position, and no record says so: the watcher may have missed these deletes."""


def changes_between(
    connection: Connection,
    store: Store,
    begin: Position,
    end: Position,
    *,
    look_first: bool,
    check_wanted: Callable[[], None],
) -> Generator[Change, None, None]:
    """The changes from `begin` up to `end`; HistoryLost when a delete among them may be missing.

    With `look_first` HistoryLost comes before the first change, unless a tombstone vanishes during the read; otherwise
    it may come at any change. A partition that `begin` does not name is read from its start. Between two batches
    `check_wanted` may raise, so that long work ends when its caller is gone.
    """
    topic = store.identity.topic
    first, last = log_bounds(connection, topic)
    refuse_unknown_partitions(topic, begin, last)
    whole_begin = Position({partition: begin.get(partition, 0) for partition in end})
    for partition, offset in whole_begin.items():
        unnamed = "" if partition in begin else f", and the position {begin} does not name that partition"
        if partition not in last:
            raise _start_over(f"{topic} has no partition {partition} any more")
        if offset > last[partition]:
            raise BadInput(f"{topic}[{partition}] ends at {last[partition]}: the position {begin} is not there yet")
        if offset < first[partition]:
            raise _start_over(f"{topic}[{partition}] starts at {first[partition]}{unnamed}")
        swept_at = store.partitions[partition].swept_at if partition in store.partitions else -1
        if offset <= swept_at:
            lost = _start_over(f"{topic}[{partition}]: deletes were found at {swept_at} that no record shows{unnamed}")
            raise SweptHere(str(lost)) if offset == swept_at else lost
    ledger = store.ledger

    def holes_are_harmless() -> bool:
        """Whether every tombstone after `begin` is still in the log, by the ledger."""
        return ledger.all_after_is_younger(begin, now_ms() - store.identity.delete_retention_ms)

    whole = partial(_whole, connection, topic, whole_begin, end, check_wanted=check_wanted)
    if look_first and not holes_are_harmless():
        for _ in whole(holes_are_harmless=lambda: False):
            pass
    return _changes(store, whole(holes_are_harmless=holes_are_harmless))


def _whole(
    connection: Connection,
    topic: str,
    begin: Position,
    end: Position,
    *,
    holes_are_harmless: Callable[[], bool],
    check_wanted: Callable[[], None],
) -> Iterator[Record]:
    """The records in between. A tombstone that was compacted away leaves a hole: without a hole nothing is missing."""
    upcoming = dict(begin)
    for batch in read_log(connection, topic, start=begin, stop=end):
        check_wanted()
        for record in batch:
            if record.offset != upcoming[record.partition] and not holes_are_harmless():
                raise _hole(topic, record.partition, upcoming[record.partition])
            upcoming[record.partition] = record.offset + 1
            yield record
    for partition, offset in upcoming.items():
        if offset < end[partition] and not holes_are_harmless():
            raise _hole(topic, partition, offset)


def _hole(topic: str, partition: int, offset: int) -> HistoryLost:
    return _start_over(
        f"{topic}[{partition}]: nothing is left at offset {offset}, and it is not known to be younger than "
        "delete.retention.ms"
    )


def _start_over(cause: str) -> HistoryLost:
    return HistoryLost(f"{cause}, so a delete may be missing: start over from the rows")


def _changes(store: Store, records: Iterator[Record]) -> Generator[Change, None, None]:
    for record in records:
        if record.key is not None:
            shown = store.get(record.key)
            if shown is None or shown.partition == record.partition:
                shown = record
            # Otherwise the key lives in two partitions, and the table shows the row of the other partition.
            yield Change(shown=shown, partition=record.partition, offset=record.offset)
