"""The bytes of a row in a fold, in memory and on disk: offset, timestamp, whether headers follow; headers; value.

A tombstone is no bytes at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from struct import Struct
from typing import Any

import numpy
import pyarrow

from lastword.core.headers import after_headers, headers_size, pack_headers, unpack_headers
from lastword.core.record import Headers
from lastword.kafka.client.reading import Columns

# Headers as Spark's connector has them, in both languages; null for a record without any.
HEADERS_TYPE = "array<struct<key:string,value:binary>>"
HEADERS_ARROW_TYPE = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))

TOMBSTONE = b""
_HEAD = Struct(">qqB")
_HEADS = numpy.dtype([("offset", ">i8"), ("timestamp", ">i8"), ("headers", "u1")])


def packed_rows(columns: Columns) -> list[bytes]:
    """The row of each record."""
    if columns.headers is None:
        heads: Iterator[bytes] = map(_HEAD.pack, columns.offsets, columns.timestamps, repeat(0))
    else:
        heads = map(_head, columns.offsets, columns.timestamps, columns.headers)
    return [head + value if value is not None else TOMBSTONE for head, value in zip(heads, columns.values, strict=True)]


def places_of(rows: list[bytes]) -> Any:
    """An array of `offset`, `timestamp` and `headers` (1 where there are some)."""
    return numpy.frombuffer(b"".join([row[: _HEAD.size] for row in rows]), dtype=_HEADS)


def values_and_headers(rows: list[bytes], *, has_headers: bool) -> tuple[list[bytes], pyarrow.Array]:
    """The values of the rows, and their headers as a column; quick if no row has headers."""
    if not has_headers:
        return [row[_HEAD.size :] for row in rows], pyarrow.nulls(len(rows), HEADERS_ARROW_TYPE)
    values, headers = zip(*map(value_and_headers, rows), strict=True)
    cells = [[{"key": name, "value": value} for name, value in pairs] or None for pairs in headers]
    return list(values), pyarrow.array(cells, HEADERS_ARROW_TYPE)


def value_and_headers(row: bytes) -> tuple[bytes, Headers]:
    if not row[_HEAD.size - 1]:
        return row[_HEAD.size :], ()
    return row[after_headers(row, _HEAD.size) :], unpack_headers(row, _HEAD.size)


def payload_bytes(columns: Columns) -> int:
    """The bytes of the values and headers of the records."""
    values = sum(len(value) for value in columns.values if value is not None)
    return values if columns.headers is None else values + sum(map(headers_size, columns.headers))


def _head(offset: int, timestamp: int, headers: Headers) -> bytes:
    if not headers:
        return _HEAD.pack(offset, timestamp, 0)
    return _HEAD.pack(offset, timestamp, 1) + pack_headers(headers)
