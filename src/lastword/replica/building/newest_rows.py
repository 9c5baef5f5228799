"""The newest row of each key while a store is built: in memory, and as sorted runs on disk when memory is short.

Rows are packed as soon as they are read: a packed row is one object, where its parts would be five, and touching
memory is what a fold of millions of keys costs. `store.apply_batch` says why newest-per-key has a second form there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import repeat
from operator import add
from pathlib import Path
from typing import cast

from rocksdict import BlockBasedOptions, DBCompressionType, IngestExternalFileOptions, Options, Rdict, SstFileWriter

from lastword.core.headers import headers_size
from lastword.kafka.client.reading import Columns
from lastword.replica.store.column_family import ColumnFamily
from lastword.replica.store.database import store_options
from lastword.replica.store.row_layout import PARTITION, ROW_HEAD, row_head

Rows = Mapping[bytes, bytes]

# A packed row is never empty.
_TOMBSTONE = b""
# The memory of a row beside its bytes: the heads of two objects and of a packed row, and rounding.
_ROW_BYTES = 2 * 33 + ROW_HEAD.size + 16


class SplitKey(Exception):
    """A key has live rows in two partitions."""


class NewestPackedRows:
    """The newest row of each key, for each partition apart: a tombstone removes only the row of its own partition."""

    def __init__(self, partitions: Iterable[int]) -> None:
        self._rows: dict[int, dict[bytes | None, bytes]] = {partition: {} for partition in partitions}
        # Needed once rows have moved to disk: a tombstone must remove the row of an earlier run.
        self.keep_tombstones = False
        self._payload_bytes = 0.0
        self._mean_bytes = 0.0

    def fold(self, columns: Columns) -> None:
        rows = self._rows[columns.partition]
        before = len(rows)
        heads = _heads(columns)
        if all(columns.values):
            # No tombstone (and no empty value): the whole batch in C, without a Python step for each record.
            rows.update(zip(columns.keys, map(add, heads, columns.values), strict=True))
        else:
            for key, head, value in zip(columns.keys, heads, columns.values, strict=True):
                if value is not None:
                    rows[key] = head + value
                elif self.keep_tombstones:
                    rows[key] = _TOMBSTONE
                else:
                    rows.pop(key, None)
        # A record without a key is no row.
        rows.pop(None, None)
        self._weigh(columns, len(rows) - before)

    def estimated_bytes(self) -> float:
        """The memory of the rows, including the memory that writing them will add."""
        count = sum(map(len, self._rows.values()))
        # Bytes of new keys are summed; rows that grow without new keys show in the recent mean.
        payload = max(self._payload_bytes, count * self._mean_bytes)
        return payload + count * _ROW_BYTES + 1.5 * sum(map(sys.getsizeof, self._rows.values()))

    def take(self) -> dict[int, Rows]:
        """The rows of each partition, which this object then forgets."""
        taken = cast(dict[int, Rows], self._rows)
        self._rows = {partition: {} for partition in taken}
        self._payload_bytes = 0.0
        return taken

    def _weigh(self, columns: Columns, grown: int) -> None:
        keys, values = columns.keys[::16], columns.values[::16]
        mean = sum(len(part) for part in (*keys, *values) if part is not None) / len(keys)
        if columns.headers is not None:
            mean += sum(map(headers_size, columns.headers[::16])) / len(keys)
        self._payload_bytes = max(0.0, self._payload_bytes + grown * mean)
        self._mean_bytes += (mean - self._mean_bytes) / 8


def _heads(columns: Columns) -> Iterator[bytes]:
    """For each record the head of its packed row."""
    fields = repeat(columns.partition), columns.offsets, columns.timestamps
    if columns.headers is None:
        return map(ROW_HEAD.pack, *fields, repeat(0))
    return map(row_head, *fields, columns.headers)


def in_key_order(newest: dict[int, Rows]) -> Iterator[tuple[bytes, bytes]]:
    """The rows of all partitions, sorted; SplitKey if two of them have the same key."""
    count = sum(map(len, newest.values()))
    rows: dict[bytes, bytes] = {}
    while newest:
        rows.update(newest.popitem()[1])
    if len(rows) < count:
        raise SplitKey
    for key in sorted(rows):
        yield key, rows[key]


class SortedRuns:
    """Sorted runs in a RocksDB of their own: partition and key -> the row, empty for a tombstone; the newest run wins.

    RocksDB merges them within bounds, however many there are: when files pile up, it compacts them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db: Rdict | None = None

    def __bool__(self) -> bool:
        return self._db is not None

    def add(self, newest: dict[int, Rows]) -> None:
        if self._db is None:
            self._db = Rdict(str(self._folder), _run_options())
        file = self._folder / "run"
        writer = SstFileWriter(_run_options())
        writer.open(str(file))
        count = 0
        for partition in sorted(newest):
            head, rows = PARTITION.pack(partition), newest.pop(partition)
            count += len(rows)
            for key in sorted(rows):
                writer[head + key] = rows[key]
        if count:
            writer.finish()
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            self._db.ingest_external_file([str(file)], options)

    def in_key_order(self, partitions: Iterable[int]) -> Iterator[tuple[bytes, bytes]]:
        """The live rows of all partitions, merged; SplitKey if two of them have the same key."""
        before = None
        for key, row in merge(*map(self._rows_of, partitions)):
            if key == before:
                raise SplitKey
            before = key
            yield key, row

    def remove(self) -> None:
        if self._db is not None:
            self._db.close()
            shutil.rmtree(self._folder)

    def _rows_of(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        assert self._db is not None  # noqa: S101  there are runs
        head = PARTITION.pack(partition)
        for key, row in ColumnFamily(self._db).items(head, PARTITION.pack(partition + 1)):
            if row != _TOMBSTONE:
                yield key[len(head) :], row


def _run_options() -> Options:
    options = store_options()
    options.set_compression_type(DBCompressionType.lz4())
    # Each run is read once, from end to end: no block is needed twice.
    blocks = BlockBasedOptions()
    blocks.disable_cache()
    options.set_block_based_table_factory(blocks)
    # Merging many runs is cheaper than rewriting them into few.
    options.set_level_zero_file_num_compaction_trigger(32)
    return options
