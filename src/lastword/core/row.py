"""A row as a Python program sees it: a record whose key and value went through their codecs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lastword.core.codecs import Codec
from lastword.core.errors import DecodeError
from lastword.core.record import Headers, Record


@dataclass(frozen=True, kw_only=True)
class Row:
    """A live key with its newest value, and the place of that record in the log.

    Bytes that the codec can't read stay bytes, with `decode_error` saying why. In `watch` a delete has the value
    None and `deleted` true; `swept` marks one whose tombstone was compacted away before it could be read.
    """

    key: Any
    value: Any
    partition: int
    offset: int
    timestamp: int
    headers: Headers = ()
    deleted: bool = False
    decode_error: str | None = None
    swept: bool = False


def row_of(record: Record, key_codec: Codec, value_codec: Codec, *, swept: bool = False) -> Row:
    key, bad_key = _decoded(key_codec, record.key)
    value, bad_value = _decoded(value_codec, record.value)
    return Row(
        key=key,
        value=value,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        headers=record.headers,
        deleted=record.is_tombstone,
        decode_error=bad_key or bad_value,
        swept=swept,
    )


def _decoded(codec: Codec, raw: bytes | None) -> tuple[Any, str | None]:
    if raw is None:
        return None, None
    try:
        return codec.decode(raw), None
    except DecodeError as damage:
        return raw, str(damage)
