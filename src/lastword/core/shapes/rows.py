"""Rows, pages, counts, writes and changes as JSON.

Rows and pages are put together from bytes of the store, for speed; tests check that they decode as these shapes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from lastword.core.shapes.field_types import Base64Text, Count, HeadersJson, PositionText, TimeMs

_Undecoded = Annotated[Base64Text, Meta(description="Bytes that the codec can't read.")]
_Headers = Annotated[
    HeadersJson,
    Meta(description="The record's headers, [name, value] each, the name as text; missing if there are none."),
]
_Table = Annotated[str, Meta(description="The table of the change, in a stream of several tables.")]
_Swept = Annotated[
    Literal[True],
    Meta(description="No tombstone says so: it was compacted away, or the row's record left the topic."),
]


class SentRow(Struct, frozen=True, kw_only=True, gc=False):
    """A live key with its newest value and the place of its record."""

    key: Raw | UnsetType = UNSET
    key_base64: _Undecoded | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    value_base64: _Undecoded | UnsetType = UNSET
    decode_error: str | UnsetType = UNSET
    partition: Count
    offset: Count
    timestamp: TimeMs
    headers: _Headers | UnsetType = UNSET


class SentPut(SentRow, frozen=True, kw_only=True, gc=False):
    """The content of the event `put`: a row as it is now."""

    table: _Table | UnsetType = UNSET


class SentPage(Struct, frozen=True):
    """Rows in key order."""

    rows: list[SentRow]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null after the last.")]
    position: PositionText


class SentDelete(Struct, frozen=True, kw_only=True):
    """The content of the event `delete`: a row is gone."""

    key: Raw | UnsetType = UNSET
    key_base64: _Undecoded | UnsetType = UNSET
    decode_error: str | UnsetType = UNSET
    tombstone: Literal[True]
    partition: Count
    offset: Count
    timestamp: TimeMs
    headers: _Headers | UnsetType = UNSET
    swept: _Swept | UnsetType = UNSET
    table: _Table | UnsetType = UNSET


class SentReset(Struct, frozen=True):
    """The content of the event `reset`: the table was built again."""

    reason: str
    table: _Table | UnsetType = UNSET


class RowLine(Struct, forbid_unknown_fields=True):
    """A line of JSON that asks for a write: a put, or a delete with `tombstone`."""

    key: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    tombstone: bool = False
    key_base64: str | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers: HeadersJson = []
    # The place of the old record, as `scan --json` and `records --json` print it: a new write ignores it.
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    decode_error: str | None = None


class CountAnswer(Struct, frozen=True):
    count: Count


class WriteAnswer(Struct, frozen=True):
    """The place of the record that was written, and a position that covers it."""

    partition: Count
    offset: Count
    position: PositionText


class WritesAnswer(Struct, frozen=True):
    """How many lines were written, and a position that covers them all."""

    written: Count
    position: PositionText
