"""One table at one server, as a comparison reads it: its status, its pages, its position."""

from __future__ import annotations

from base64 import b64decode
from itertools import pairwise
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Raw

from lastword.compare.row_consistency import ComparedRow
from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.core.http_client import Server, ServerRefused
from lastword.core.position import Position
from lastword.core.shapes.rows import SentPage, SentRow
from lastword.core.shapes.tables import TablesAnswer, TableStatus

_NOT_REACHED = ("position_not_reached", "too_many_waiting")


class RemotePage(NamedTuple):
    """Rows in key order, the cursor to those after them (None after the last), and the position they have."""

    rows: list[ComparedRow]
    following: str | None
    position: Position


class SidePosition(NamedTuple):
    """How far a side is; `row_consistency.SideAnswer` explains the three positions."""

    position: Position
    log_start: Position = Position()
    topic_log_start: Position = Position()


class Side(Protocol):
    def page(self, cursor: str | None, reach: Position) -> RemotePage:
        """The page at a cursor, when the side has reached the position, or its wait for the position is over."""

    def current_position(self) -> SidePosition:
        """How far the side is now: at least as far as all its answers so far."""


def tables_of(server: Server) -> dict[str, TableStatus]:
    """The status of all tables of a server, by name."""
    return {status.name: status for status in server.get("/tables", {}, TablesAnswer).tables}


class ServedSide:
    """A table of a server."""

    def __init__(self, server: Server, status: TableStatus) -> None:
        self.url = server.url
        self.name = status.name
        self._server = server
        self._path = f"/tables/{status.name}"
        self._key_codec = codec_named(status.key)
        # Partitions that did not reach the position of the other side: they are not waited for again.
        self.behind: dict[int, int] = {}

    def page(self, cursor: str | None, reach: Position) -> RemotePage:
        query = {} if cursor is None else {"cursor": cursor}
        goal = Position({p: offset for p, offset in reach.items() if p not in self.behind})
        if goal:
            try:
                return self._ask({**query, "min_position": str(goal)})
            except ServerRefused as refused:
                if refused.code not in _NOT_REACHED:
                    raise
        page = self._ask(query)
        self.behind |= {p: offset for p, offset in goal.items() if page.position.get(p, 0) < offset}
        return page

    def current_position(self) -> SidePosition:
        now = self.status()
        return SidePosition(*(Position.parse(text) for text in (now.position, now.log_start, now.topic_log_start)))

    def status(self) -> TableStatus:
        return self._server.get(self._path, {}, TableStatus)

    def _ask(self, query: dict[str, str]) -> RemotePage:
        answer = self._server.get(f"{self._path}/rows", query, SentPage)
        rows = list(map(self._row, answer.rows))
        if any(one.key >= other.key for one, other in pairwise(rows)):
            # For example a 4-byte int among 8-byte ones, or JSON with space around it: the JSON hides the bytes.
            raise BadInput(
                f"{self.name} at {self.url} has keys that the codec {self._key_codec.name} does not show to the byte: "
                "serve it with key=bytes on both sides and compare again"
            )
        return RemotePage(rows, answer.next if rows else None, Position.parse(answer.position))

    def _row(self, row: SentRow) -> ComparedRow:
        # Where a codec can't read the bytes, the row has them as base64.
        key = self._key_codec.from_json(row.key) if isinstance(row.key, Raw) else b64decode(row.key_base64 or "")
        value = bytes(row.value) if isinstance(row.value, Raw) else f"base64 {row.value_base64}".encode()
        headers = msgspec.json.encode(row.headers) if row.headers else b""
        return ComparedRow(key, value, row.partition, row.offset, row.timestamp, headers)
