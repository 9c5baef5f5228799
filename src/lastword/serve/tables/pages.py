"""Rows in key order, a page at a time, and the cursor that leads to the next page."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from lastword.core.position import Position
from lastword.replica.reads import TableReads, after_prefix
from lastword.serve.http.answers import COMMON, Answer, Refused, answered_at
from lastword.serve.http.limits import Limits
from lastword.serve.http.queries import RowsQuery
from lastword.serve.tables.keys import base64url, from_base64url, key_of, prefix_of
from lastword.serve.tables.row_answer import RowBody, row_body, value_body
from lastword.serve.tables.served_table import ServedTable

_SEAL_BYTES = 8


class Range(NamedTuple):
    """At most `limit` keys with first <= key < last; `seal` ties a cursor to its query."""

    first: bytes
    last: bytes | None
    limit: int
    seal: bytes


class RowPage(NamedTuple):
    bodies: list[bytes]
    # Where the next page begins; None after the last row.
    cursor: str | None
    position: Position


def range_of(table: ServedTable, query: RowsQuery, limits: Limits) -> Range:
    """The keys that a query asks for; Refused for a bad limit and for a foreign cursor."""
    codec = table.key_codec
    first = prefix_of(query.prefix or "", codec, limits)
    last = after_prefix(first)
    if query.start:
        first = max(first, key_of(query.start, codec, limits))
    if query.end:
        end = key_of(query.end, codec, limits)
        last = end if last is None else min(last, end)
    seal = _seal(table.name, query.prefix or "", query.start or "", query.end or "")
    if query.cursor is not None:
        first = max(first, _after(query.cursor, seal))
    return Range(first, last, _limit(query.limit, limits), seal)


def page_of(table: ServedTable, wanted: Range, limits: Limits, body: RowBody) -> RowPage:
    """The rows of one moment, from the start of the range up to its limit or the largest page."""
    return table.ask(lambda reads: _page(reads, table, wanted, limits.page_bytes, body))


def rows_answer(table: ServedTable, wanted: Range, limits: Limits) -> Answer:
    """A page of rows, with the cursor of the next page."""
    bodies, cursor, position = page_of(table, wanted, limits, row_body)
    following = b"null" if cursor is None else b'"%b"' % cursor.encode()
    content = b'{"rows":[%b],"next":%b,"position":"%b"}' % (b",".join(bodies), following, str(position).encode())
    return Answer(200, [*COMMON, answered_at(position)], content)


def values_answer(table: ServedTable, wanted: Range, limit: str | None, limits: Limits) -> Answer:
    """A page of bare values, with a link to the next page, which has the same limit."""
    bodies, cursor, position = page_of(table, wanted, limits, value_body)
    headers = [*COMMON, answered_at(position)]
    if cursor is not None:
        limited = "" if limit is None else f"&limit={limit}"
        headers.append(("link", f'</{table.name}?cursor={cursor}{limited}>; rel="next"'))
    return Answer(200, headers, b"[%b]" % b",".join(bodies))


def _page(reads: TableReads, table: ServedTable, wanted: Range, page_bytes: int, body: RowBody) -> RowPage:
    # The position is read first: rows may be newer than the position, never older.
    position, bodies, size, key = reads.position, list[bytes](), 0, b""
    key_codec, value_codec, limit = table.key_codec, table.value_codec, wanted.limit
    for row in reads.rows(wanted.first, wanted.last):
        if len(bodies) == limit or size >= page_bytes:
            return RowPage(bodies, base64url(_sealed(wanted.seal, key) + key), position)
        key = row.key
        content = body(row, key_codec, value_codec)
        bodies.append(content)
        size += len(content)
    return RowPage(bodies, None, position)


def _limit(text: str | None, limits: Limits) -> int:
    if text is None:
        return limits.page_rows
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 0 < int(text) <= limits.page_rows):
        message = f"limit must be between 1 and {limits.page_rows}"
        raise Refused("bad_query", message, "more rows come page after page, with the cursor of the page before")
    return int(text)


def _after(cursor: str, seal: bytes) -> bytes:
    """The first key that can follow the key of a cursor."""
    try:
        raw = from_base64url(cursor)
    except ValueError:
        raw = b""
    key = raw[_SEAL_BYTES:]
    if not key or raw[:_SEAL_BYTES] != _sealed(seal, key):
        raise Refused(
            "bad_cursor",
            "the cursor is damaged, or of another query",
        )
    return key + b"\0"


def _seal(*asked: str) -> bytes:
    """A digest of the query. It is no secret, so an instance takes the cursor of another instance."""
    content = b"".join(len(raw).to_bytes(4, "big") + raw for raw in (text.encode() for text in asked))
    return hashlib.blake2b(content, digest_size=16, person=b"lastword cursor").digest()


def _sealed(seal: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=_SEAL_BYTES, key=seal).digest()
