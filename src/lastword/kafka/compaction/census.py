"""The census of a partition: how many of its records are the newest of their key, and which may be removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lastword.core.record import Record


@dataclass(frozen=True, kw_only=True)
class Census:
    """The counts of a partition up to a position."""

    records: int = 0
    keys: int = 0
    tombstones: int = 0
    # Records that a later record of the same key makes obsolete. Records without a key count: the cleaner removes them.
    obsolete: int = 0
    newest_timestamp_ms: int = -1
    # The last record that was made obsolete before the first record that is too young to be cleaned.
    last_removable_offset: int | None = None
    # Of the tombstones that are the newest record of their key.
    oldest_tombstone_ms: int | None = None
    last_tombstone_offset: int | None = None


def take_census(batches: Iterable[Iterable[Record]], *, ripe_until_ms: float = float("inf")) -> dict[int, Census]:
    """The census of every partition that has records; a record stamped after `ripe_until_ms` is too young to clean.

    Keeps every distinct key in memory, as the cleaner does (it keeps a hash of each). Not `core.fold`, which gives the
    rows of a table: a census counts the records that Kafka's cleaner removes, and this cleaner works on one partition
    at a time. So a key counts in each of its partitions, and its newest record counts also if it is a tombstone.
    """
    counts: dict[int, _Count] = {}
    for batch in batches:
        for record in batch:
            count = counts.get(record.partition)
            if count is None:
                count = counts[record.partition] = _Count(ripe_until_ms)
            count.add(record)
    return {partition: count.census() for partition, count in sorted(counts.items())}


class _Count:
    """A census in the making: records arrive in offset order."""

    def __init__(self, ripe_until_ms: float) -> None:
        self.ripe_until_ms = ripe_until_ms
        self.all_ripe = True
        self.records = 0
        self.tombstones = 0
        self.newest_timestamp_ms = -1
        self.last_removable_offset: int | None = None
        self.newest: dict[bytes, int] = {}
        self.deleted_at_ms: dict[bytes, int] = {}

    def add(self, record: Record) -> None:
        self.records += 1
        self.newest_timestamp_ms = max(self.newest_timestamp_ms, record.timestamp)
        # The cleaner stops at the first segment that holds a young record, so nothing after one is ripe either.
        self.all_ripe = self.all_ripe and record.timestamp <= self.ripe_until_ms
        if record.value is None:
            self.tombstones += 1
        if record.key is None:
            self._made_obsolete(record.offset)
            return
        previous = self.newest.get(record.key)
        self.newest[record.key] = record.offset
        if previous is not None:
            self._made_obsolete(previous)
            self.deleted_at_ms.pop(record.key, None)
        if record.value is None:
            self.deleted_at_ms[record.key] = record.timestamp

    def _made_obsolete(self, offset: int) -> None:
        if self.all_ripe:
            self.last_removable_offset = max(self.last_removable_offset or 0, offset)

    def census(self) -> Census:
        return Census(
            records=self.records,
            keys=len(self.newest),
            tombstones=self.tombstones,
            obsolete=self.records - len(self.newest),
            newest_timestamp_ms=self.newest_timestamp_ms,
            last_removable_offset=self.last_removable_offset,
            oldest_tombstone_ms=min(self.deleted_at_ms.values(), default=None),
            last_tombstone_offset=max((self.newest[key] for key in self.deleted_at_ms), default=None),
        )
