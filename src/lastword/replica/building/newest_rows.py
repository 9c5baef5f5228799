"""The newest row of each key in memory, while a topic is folded; and when these rows move to the disk.

Rows are packed as soon as they are read: a packed row is one object, where its parts would be five, and touching
memory is what a fold of millions of keys costs. `store.apply_batch` says why newest-per-key has a second form there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from operator import add

from lastword.kafka.client.reading import Columns
from lastword.replica.store.row_layout import PARTITION, ROW_HEAD, row_head

# The memory of a row beside its bytes: the heads of two objects and of a packed row, and rounding.
_ROW_BYTES = 2 * 33 + ROW_HEAD.size + 16
# So many rows are a good run: they fit into the processor's cache, and a merge of a thousand of them is still quick.
RUN_ROWS = 100_000
# A run of fewer bytes costs the merge more than it gains here: each range reads a block of each run.
_LEAST_RUN_BYTES = 8 * 1024 * 1024
# Of a log with so many distinct keys among its records, waiting for repeats gains nothing.
_DISTINCT_SHARE = 0.9
# So many keys of each run are remembered, and so many of all runs, to see whether they come back.
_MARKED_IN_A_RUN = 64
_MOST_MARKED = 32_768


class NewestPackedRows:
    """The newest row of each key, for each partition apart: a tombstone removes only the row of its own partition."""

    def __init__(self, partitions: Iterable[int], *, run_rows: int = RUN_ROWS) -> None:
        self._rows: dict[int, dict[bytes | None, bytes]] = {partition: {} for partition in partitions}
        # What stands for a tombstone once rows have moved to the disk, where it must remove the row of an earlier run.
        self._tombstones: dict[int, bytes] | None = None
        self._run_rows = run_rows
        # The bytes of new keys with their first values; and of records that may have replaced some since a count.
        self._payload_bytes = 0.0
        self._replaced_bytes = 0.0
        self._records = 0
        self._marked: set[bytes | None] = set()
        self._look_at_rows, self._look_at_bytes = run_rows, 0.0

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def fold(self, columns: Columns) -> None:
        rows = self._rows[columns.partition]
        before = len(rows)
        heads: Iterable[bytes] = _heads(columns)
        if columns.headers is not None:
            # Twice: their sizes are needed, too.
            heads = [*heads]
        if all(columns.values):
            # No tombstone (and no empty value): the whole batch in C, without a Python step for each record.
            rows.update(zip(columns.keys, map(add, heads, columns.values), strict=True))
        else:
            tombstone = None if self._tombstones is None else self._tombstones[columns.partition]
            for key, head, value in zip(columns.keys, heads, columns.values, strict=True):
                if value is not None:
                    rows[key] = head + value
                elif tombstone is not None:
                    rows[key] = tombstone
                else:
                    rows.pop(key, None)
        # A record without a key is no row.
        rows.pop(None, None)
        self._records += len(columns.keys)
        self._weigh(columns, heads if isinstance(heads, list) else (), len(rows) - before)

    def is_run(self, room: float) -> bool:
        """Whether the rows should move to the disk: they fill the room, or more records would hardly replace any."""
        size, count = self.estimated_bytes(), len(self)
        if size <= room < size + self._replaced_bytes and self._replaced_bytes > self._payload_bytes / 4:
            # Rows may have grown so much without new keys.
            self._count_bytes()
            size = self.estimated_bytes()
        if size > room:
            return True
        if count < self._look_at_rows and size < (self._look_at_bytes or max(room / 4, _LEAST_RUN_BYTES)):
            return False
        self._look_at_rows, self._look_at_bytes = 2 * count, 2 * size
        return count >= _DISTINCT_SHARE * self._records and self._all_keys() * size / count > room

    def estimated_bytes(self) -> float:
        """The memory of the rows, including the memory that writing them will add."""
        return self._payload_bytes + len(self) * _ROW_BYTES + 1.5 * sum(map(sys.getsizeof, self._rows.values()))

    def take(self) -> dict[int, dict[bytes, bytes]]:
        """The rows of each partition, which this object then forgets; from now on tombstones are rows, too."""
        taken = self._rows
        if len(self._marked) < _MOST_MARKED:
            keys = chain.from_iterable(taken.values())
            self._marked.update(islice(keys, 0, None, max(1, len(self) // _MARKED_IN_A_RUN)))
        self._rows = {partition: {} for partition in taken}
        self._tombstones = {partition: PARTITION.pack(partition) for partition in taken}
        self._payload_bytes, self._replaced_bytes, self._records = 0.0, 0.0, 0
        self._look_at_rows, self._look_at_bytes = self._run_rows, 0.0
        return taken  # type: ignore[return-value]  # the key None was taken out

    def _all_keys(self) -> float:
        """An estimate of how many keys the log has, as fish in a lake are counted: by marked ones that come back."""
        found = sum(len(self._marked & rows.keys()) for rows in self._rows.values())
        return len(self) * len(self._marked) / found if found else math.inf

    def _weigh(self, columns: Columns, heads: Iterable[bytes], grown: int) -> None:
        # Every record, because a sample may miss the large ones; by map and filter, in C.
        size = sum(sum(map(len, filter(None, parts))) for parts in (columns.keys, columns.values, heads))
        new = size * max(0, grown) / len(columns.keys)
        self._payload_bytes += new
        self._replaced_bytes += size - new

    def _count_bytes(self) -> None:
        sizes = (sum(map(len, rows)) + sum(map(len, rows.values())) for rows in self._rows.values())  # type: ignore[arg-type]
        self._payload_bytes, self._replaced_bytes = float(sum(sizes)), 0.0


def layers(newest: dict[int, dict[bytes, bytes]]) -> list[dict[bytes, bytes]]:
    """The rows of all partitions in as few mappings as possible: more than one only where partitions share keys."""
    merged: list[dict[bytes, bytes]] = []
    while newest:
        _, rows = newest.popitem()
        for layer in merged:
            if layer.keys().isdisjoint(rows):
                layer.update(rows)
                break
        else:
            merged.append(rows)
    return merged


def _heads(columns: Columns) -> Iterator[bytes]:
    """For each record the head of its packed row."""
    fields = repeat(columns.partition), columns.offsets, columns.timestamps
    if columns.headers is None:
        return map(ROW_HEAD.pack, *fields, repeat(0))
    return map(row_head, *fields, columns.headers)
