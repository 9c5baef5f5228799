"""One batch of records folded into the stored rows: what to write, and the counts that go with it.

Nearly every key lives in one partition, and its newest record is simply its row. A key with live rows in two
partitions (partitions were added, or a writer has another partitioner) takes the slower way: each partition keeps
its own row, a tombstone removes only that of its own partition, and the row with the later (timestamp, partition) is
shown (`core.split_keys`), so that every replica gives the same answer whatever the order of arrival.

Newest-per-key is both here and in `building.newest_rows`, because the two start from different things. Here a batch of
records meets rows on disk, with their counts, hidden rows and last good values. There an empty store is filled from
columns of millions of records, and no row is looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocksdict import WriteBatch

from lastword.core.record import Record
from lastword.core.split_keys import tie_break
from lastword.replica.store.column_family import ColumnFamily
from lastword.replica.store.database import HIDDEN_ROWS, LAST_GOOD_VALUES, PARTITION_STATES, ROWS, Database
from lastword.replica.store.row_layout import (
    PARTITION,
    CommittedState,
    PartitionState,
    is_poison,
    pack_partition_state,
    pack_row,
    pack_rows,
    partition_in,
    unpack_row,
    unpack_rows,
    value_in,
)

_AT_A_TIME = 64


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The records of a commit in their order, and their changes."""

    records: Sequence[Record]
    # By index, for records of a key in two partitions: the row that the table shows after the record, a tombstone where
    # it shows none, or None where the record changed nothing.
    shown: Mapping[int, Record | None]

    def changes(self) -> Iterator[tuple[Record, Record]]:
        """(the record that was read, the row or tombstone that the table shows after it), in order."""
        for index, record in enumerate(self.records):
            shown = self.shown.get(index, record)
            if shown is not None:
                yield record, shown


def _values(family: ColumnFamily, keys: list[bytes]) -> list[bytes | None]:
    """The value of each key. A few keys at a time: during a lookup no other thread can read."""
    values: list[bytes | None] = []
    for start in range(0, len(keys), _AT_A_TIME):
        values += family.get(keys[start : start + _AT_A_TIME])
    return values


class BatchEdit:
    """One WriteBatch in the making, and the state that its commit leads to.

    `readable` says whether the value codec can read some bytes; `most_last_good_bytes` limits the last good values.
    """

    def __init__(
        self,
        database: Database,
        state: CommittedState,
        *,
        readable: Callable[[bytes], bool],
        most_last_good_bytes: int,
    ) -> None:
        self._database = database
        self._state = state
        self._readable = readable
        self._most_last_good_bytes = most_last_good_bytes
        self._batch = WriteBatch(raw_mode=True)
        self._handles = database.handles
        self._live: defaultdict[int, int] = defaultdict(int)
        self._poison: defaultdict[int, int] = defaultdict(int)
        self._split_keys = 0
        self._hidden_rows = 0
        self._last_good_bytes = state.last_good_bytes
        self._moved: dict[int, PartitionState] = {}
        self._records: Sequence[Record] = ()
        # The values of each key in their order; made when the first value is found that can't be read.
        self._by_key: defaultdict[bytes, list[bytes]] | None = None

    def fold(self, records: Sequence[Record]) -> Applied:
        """Takes the newest record of each key, and compares it with the stored row."""
        self._records = records
        newest: dict[bytes, Record] = {}
        split: set[bytes] = set()
        for record in records:
            key = record.key
            assert key is not None  # noqa: S101  the caller leaves out records without a key
            earlier = newest.get(key)
            if earlier is not None and earlier.partition != record.partition:
                split.add(key)
            newest[key] = record
        keys = list(newest)
        befores = _values(self._database.rows, keys)
        hidden_rows = _values(self._database.hidden_rows, keys) if self._state.split_keys else [None] * len(keys)
        for key, before, hidden in zip(keys, befores, hidden_rows, strict=True):
            record = newest[key]
            if key in split or hidden is not None or (before is not None and partition_in(before) != record.partition):
                split.add(key)
            else:
                self._replace(key, before, record)
        if not split:
            return Applied(records=records, shown={})
        stored = {
            key: (before, hidden)
            for key, before, hidden in zip(keys, befores, hidden_rows, strict=True)
            if key in split
        }
        return Applied(records=records, shown=self._fold_split_keys(records, stored))

    def move(self, partitions: Mapping[int, PartitionState]) -> None:
        committed = self._state.partitions
        for partition in {*partitions, *self._live, *self._poison}:
            old = committed.get(partition, PartitionState(position=0))
            self._moved[partition] = partitions.get(partition, old)._replace(
                live_rows=old.live_rows + self._live[partition],
                poison_rows=old.poison_rows + self._poison[partition],
            )
        for partition, state in self._moved.items():
            self._batch.put(PARTITION.pack(partition), pack_partition_state(state), self._handles[PARTITION_STATES])

    def result(self) -> tuple[WriteBatch, CommittedState]:
        """What to write, and the state that is committed by it."""
        partitions, split_keys, hidden_rows, _ = self._state
        return self._batch, CommittedState(
            {**partitions, **self._moved},
            split_keys + self._split_keys,
            hidden_rows + self._hidden_rows,
            self._last_good_bytes,
        )

    def _replace(self, key: bytes, before: bytes | None, record: Record) -> None:
        partition = record.partition
        was_poison = _is_poison(before)
        if record.value is None:
            if before is not None:
                self._batch.delete(key, self._handles[ROWS])
                self._live[partition] -= 1
            poison = False
        else:
            poison = not self._readable(record.value)
            self._batch.put(key, pack_row(record, poison=poison), self._handles[ROWS])
            if before is None:
                self._live[partition] += 1
        if poison or was_poison:
            self._poison[partition] += poison - was_poison
            self._keep_last_good(key, poison, before)

    def _fold_split_keys(
        self, records: Sequence[Record], stored: Mapping[bytes, tuple[bytes | None, bytes | None]]
    ) -> dict[int, Record | None]:
        rows = {key: _by_partition(before, hidden) for key, (before, hidden) in stored.items()}
        olds = {key: dict(by_partition) for key, by_partition in rows.items()}
        shown: dict[int, Record | None] = {}
        for index, record in enumerate(records):
            key = record.key
            if key is None or key not in rows:
                continue
            by_partition = rows[key]
            was = _shown(by_partition)
            if record.value is None:
                by_partition.pop(record.partition, None)
            else:
                by_partition[record.partition] = pack_row(record, poison=not self._readable(record.value))
            now = _shown(by_partition)
            if now is None:
                shown[index] = record
            else:
                shown[index] = None if now == was else unpack_row(key, now)
        for key, by_partition in rows.items():
            self._write_split_key(key, olds[key], by_partition)
        return shown

    def _write_split_key(self, key: bytes, old: dict[int, bytes], new: dict[int, bytes]) -> None:
        for partition in old.keys() | new.keys():
            was, now = old.get(partition), new.get(partition)
            self._live[partition] += (now is not None) - (was is not None)
            self._poison[partition] += _is_poison(now) - _is_poison(was)
        before, shown = _shown(old), _shown(new)
        if shown is None:
            self._batch.delete(key, self._handles[ROWS])
        else:
            self._batch.put(key, shown, self._handles[ROWS])
        hidden = [row for row in new.values() if row is not shown]
        if hidden:
            self._batch.put(key, pack_rows(hidden), self._handles[HIDDEN_ROWS])
        elif len(old) > 1:
            self._batch.delete(key, self._handles[HIDDEN_ROWS])
        self._split_keys += (len(new) > 1) - (len(old) > 1)
        self._hidden_rows += len(hidden) - max(0, len(old) - 1)
        poison = _is_poison(shown)
        if poison or _is_poison(before):
            self._keep_last_good(key, poison, before)

    def _keep_last_good(self, key: bytes, poison: bool, before: bytes | None) -> None:
        """Keeps the last value that could be read beside a value that can't be read."""
        old = self._database.last_good_values.get(key)
        if not poison:
            if old is not None:
                self._batch.delete(key, self._handles[LAST_GOOD_VALUES])
                self._last_good_bytes -= len(old)
            return
        good = self._last_readable(key, before)
        if good is None:
            return
        room = self._most_last_good_bytes - self._last_good_bytes + len(old or b"")
        if len(good) <= room:
            self._batch.put(key, good, self._handles[LAST_GOOD_VALUES])
            self._last_good_bytes += len(good) - len(old or b"")
        elif old is not None:
            # No value is better than a value that was not the last one.
            self._batch.delete(key, self._handles[LAST_GOOD_VALUES])
            self._last_good_bytes -= len(old)

    def _last_readable(self, key: bytes, before: bytes | None) -> bytes | None:
        """The newest value of this batch that can be read, or else the value of the row before the batch."""
        if self._by_key is None:
            self._by_key = defaultdict(list)
            for record in self._records:
                if record.key is not None and record.value is not None:
                    self._by_key[record.key].append(record.value)
        for value in reversed(self._by_key[key]):
            if self._readable(value):
                return value
        return value_in(before) if before is not None and not is_poison(before) else None


def _by_partition(before: bytes | None, hidden: bytes | None) -> dict[int, bytes]:
    packed = [] if before is None else [before]
    packed += unpack_rows(hidden) if hidden is not None else []
    return {partition_in(row): row for row in packed}


def _is_poison(row: bytes | None) -> bool:
    return row is not None and is_poison(row)


def _shown(by_partition: Mapping[int, bytes]) -> bytes | None:
    """The row that is shown among the live rows of one key."""
    if len(by_partition) < 2:
        return next(iter(by_partition.values()), None)
    return max(by_partition.values(), key=lambda row: tie_break(unpack_row(b"", row)))
