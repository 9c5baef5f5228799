"""All rows of a table as they were at one moment, a slice at a time, for a reader who may take long."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lastword.core.errors import NotReady
from lastword.core.position import Position
from lastword.replica.store.column_family import FamilyCursor


class Slice(NamedTuple):
    """The next rows in key order, each in the shape that was asked for, and where the listing is after them."""

    rows: list[bytes]
    rows_so_far: int
    start: bytes
    is_last: bool


class Listing:
    """Used by one thread at a time; to be closed, because it keeps its store open."""

    def __init__(self, cursor: FamilyCursor, position: Position, *, expected: int) -> None:
        # Everything before it is in the rows.
        self.position = position
        self._cursor: FamilyCursor | None = cursor
        self._expected = expected
        self._count = 0
        self._start = b""

    def next_slice(self, shape: Callable[[bytes, bytes], bytes], *, most_rows: int, most_bytes: int) -> Slice:
        """The rows up to a limit, the one that reaches it included; the same again until `advance`.

        StoreDamaged when they can't be read, and in the place of the last slice when the rows are not as many as the
        store says: a slice that is the last ends a whole listing.
        """
        cursor = self._cursor
        if cursor is None:
            raise NotReady("this listing of rows was closed: begin another one")
        rows, size, start = list[bytes](), 0, self._start
        for key, raw in cursor.items(start):
            if len(rows) == most_rows or size >= most_bytes:
                return Slice(rows, self._count + len(rows), start, is_last=False)
            rows.append(shape(key, raw))
            size += len(rows[-1])
            # The first key that can follow it.
            start = key + b"\0"
        count = self._count + len(rows)
        cursor.check_count(count, self._expected)
        return Slice(rows, count, start, is_last=True)

    def advance(self, taken: Slice) -> None:
        self._count, self._start = taken.rows_so_far, taken.start

    def close(self) -> None:
        """Lets go of the store, as soon as no slice is being read."""
        self._cursor = None
