"""The typed reads of a replica for other rooms: rows, counts and positions, never the store's own bytes.

`Replica.ask` hands a `TableReads` to a function. It shows the store that is open at that moment, so all answers to
the function come from one store. Use it only within that call; a `RowListing` may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import starmap
from typing import NamedTuple

import msgspec

from lastword.core.errors import NotReady
from lastword.core.headers import unpack_headers
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.replica.store.column_family import FamilyCursor
from lastword.replica.store.row_layout import ROW_HEAD, is_poison, value_in
from lastword.replica.store.store import Store


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A live row; its headers are decoded only for a reader who asks for them."""

    key: bytes
    value: bytes
    partition: int
    offset: int
    timestamp: int
    packed_headers: bytes = b""
    # Whether the value codec can't read the value.
    is_poison: bool = False

    @property
    def headers(self) -> Headers:
        return unpack_headers(self.packed_headers, 0) if self.packed_headers else ()

    def record(self) -> Record:
        return Record(self.key, self.value, self.partition, self.offset, self.timestamp, self.headers)


def stored_row(key: bytes, packed: bytes) -> StoredRow:
    partition, offset, timestamp, flags = ROW_HEAD.unpack_from(packed)
    if not flags:
        return StoredRow(key, packed[ROW_HEAD.size :], partition, offset, timestamp)
    value = value_in(packed)
    headers = packed[ROW_HEAD.size : len(packed) - len(value)]
    return StoredRow(key, value, partition, offset, timestamp, headers, is_poison(packed))


class FoundRow(msgspec.Struct, frozen=True, gc=False):
    """The answer to a point read. The row may be newer than the position, never older; None where the key has none."""

    topic_id: str
    position: Position
    row: StoredRow | None


class TableReads(msgspec.Struct, frozen=True, gc=False):
    """Reads of one store. Keys are in the order of their bytes."""

    _store: Store

    def __len__(self) -> int:
        """The number of live keys, exactly."""
        return len(self._store)

    @property
    def topic_id(self) -> str:
        return self._store.topic_id

    @property
    def position(self) -> Position:
        """Everything before it is in the rows."""
        return self._store.position

    @property
    def log_start(self) -> Position:
        """The rows are the fold of the records from here up to the position."""
        return self._store.log_start

    @property
    def topic_log_start(self) -> Position:
        """The log start at the last check; the next pass over all rows removes older rows."""
        return self._store.topic_log_start

    @property
    def applied_records(self) -> int:
        """Records that were applied since the store was opened."""
        return self._store.applied_records

    @property
    def poison_rows(self) -> int:
        """Rows whose value the codec can't read."""
        return self._store.poison_rows

    @property
    def pinned_bytes(self) -> int:
        """Memory that RocksDB holds for unfinished scans."""
        return self._store.rows.pinned_bytes

    def find(self, key: bytes) -> FoundRow:
        store = self._store
        # The position first: rows may be newer than it, never older.
        topic_id, position, packed = store.topic_id, store.position, store.rows.get(key)
        return FoundRow(topic_id, position, None if packed is None else stored_row(key, packed))

    def rows(self, start: bytes = b"", end: bytes | None = None) -> Iterator[StoredRow]:
        """Rows with start <= key < end in key order, as they were at this call."""
        return starmap(stored_row, self._store.packed_rows(start, end))

    def listing(self) -> RowListing:
        """All rows of this moment, for a reader who takes them a slice at a time."""
        return RowListing(self._store)

    def is_store_of(self, listing: RowListing) -> bool:
        """Whether the listing reads this very store, and not one that has been replaced."""
        return listing.is_of(self._store)


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key after all keys with the prefix, or None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class Slice(NamedTuple):
    """The next rows in key order, each in the shape of the caller, and the place in the listing after them."""

    rows: list[bytes]
    rows_so_far: int
    start: bytes
    is_last: bool


class RowListing:
    """All rows of a table at one moment, a slice at a time, for a reader who may take long.

    Used by one thread at a time. Close a listing: it keeps its store open.
    """

    def __init__(self, store: Store) -> None:
        # Everything before the position is in the rows.
        cursor, self.position, self._expected = store.whole_cursor()
        self._open: tuple[Store, FamilyCursor] | None = store, cursor
        self._count = 0
        self._start = b""

    def is_of(self, store: Store) -> bool:
        return self._open is not None and self._open[0] is store

    def next_slice(self, shape: Callable[[StoredRow], bytes], *, most_rows: int, most_bytes: int) -> Slice:
        """The rows up to a limit, including the row that reaches it; the same rows again until `advance`.

        StoreDamaged if they can't be read. Also instead of the last slice, if the number of rows is not the store's: a
        last slice ends a whole listing.
        """
        if self._open is None:
            raise NotReady("this listing of rows was closed: begin another one")
        _, cursor = self._open
        rows, size, start = list[bytes](), 0, self._start
        for key, packed in cursor.items(start):
            if len(rows) == most_rows or size >= most_bytes:
                return Slice(rows, self._count + len(rows), start, is_last=False)
            content = shape(stored_row(key, packed))
            rows.append(content)
            size += len(content)
            # The first key after this one.
            start = key + b"\0"
        count = self._count + len(rows)
        cursor.check_count(count, self._expected)
        return Slice(rows, count, start, is_last=True)

    def advance(self, taken: Slice) -> None:
        self._count, self._start = taken.rows_so_far, taken.start

    def close(self) -> None:
        """Releases the store, as soon as no slice is being read."""
        self._open = None
