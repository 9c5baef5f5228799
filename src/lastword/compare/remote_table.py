"""One table at one server, as a comparison asks for it: how it stands, its pages, its position."""

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


class Whereabouts(NamedTuple):
    """How far a side is: see `Seen` for what each of these says of an answer."""

    position: Position
    log_start: Position = Position()
    topic_log_start: Position = Position()


class Side(Protocol):
    def page(self, cursor: str | None, reach: Position) -> RemotePage:
        """The page at a cursor, once the side has reached the position, or has not for as long as it waits."""

    def whereabouts(self) -> Whereabouts:
        """How far the side is now: at least as far as all that it has answered."""


def tables_of(server: Server) -> dict[str, TableStatus]:
    """All that a server serves, by name."""
    return {standing.name: standing for standing in server.get("/tables", {}, TablesAnswer).tables}


class ServedSide:
    """A table of a server."""

    def __init__(self, server: Server, standing: TableStatus) -> None:
        self.url = server.url
        self.name = standing.name
        self._server = server
        self._path = f"/tables/{standing.name}"
        self._key_codec = codec_named(standing.key)
        # Partitions that did not get where the other side was: they are not waited for again.
        self.behind: dict[int, int] = {}

    def page(self, cursor: str | None, reach: Position) -> RemotePage:
        query = {} if cursor is None else {"cursor": cursor}
        wanted = Position({p: offset for p, offset in reach.items() if p not in self.behind})
        if wanted:
            try:
                return self._asked({**query, "min_position": str(wanted)})
            except ServerRefused as refused:
                if refused.code not in _NOT_REACHED:
                    raise
        page = self._asked(query)
        self.behind |= {p: offset for p, offset in wanted.items() if page.position.get(p, 0) < offset}
        return page

    def whereabouts(self) -> Whereabouts:
        now = self.standing()
        return Whereabouts(*(Position.parse(text) for text in (now.position, now.log_start, now.topic_log_start)))

    def standing(self) -> TableStatus:
        return self._server.get(self._path, {}, TableStatus)

    def _asked(self, query: dict[str, str]) -> RemotePage:
        told = self._server.get(f"{self._path}/rows", query, SentPage)
        rows = list(map(self._row, told.rows))
        if any(one.key >= other.key for one, other in pairwise(rows)):
            # A 4-byte int among those of 8, say, or JSON with space around it: what is shown does not tell the bytes.
            raise BadInput(
                f"{self.name} at {self.url} has keys that the codec {self._key_codec.name} does not show to the byte: "
                "serve it with key=bytes on both sides and compare again"
            )
        return RemotePage(rows, told.next if rows else None, Position.parse(told.position))

    def _row(self, row: SentRow) -> ComparedRow:
        # Where a codec can't read the bytes, base64 stands instead of them.
        key = self._key_codec.from_json(row.key) if isinstance(row.key, Raw) else b64decode(row.key_base64 or "")
        value = bytes(row.value) if isinstance(row.value, Raw) else f"base64 {row.value_base64}".encode()
        headers = msgspec.json.encode(row.headers) if row.headers else b""
        return ComparedRow(key, value, row.partition, row.offset, row.timestamp, headers)
