"""One row as it is answered: the bytes of the store between a few of ours, without decoding what is in them."""

from __future__ import annotations

from collections.abc import Callable

from lastword.core.codecs import Codec
from lastword.core.errors import DecodeError
from lastword.core.headers import headers_field
from lastword.core.position import Position
from lastword.core.row_json import row_json
from lastword.replica.store.row_layout import POISON, ROW_HEAD, headers_in, is_poison, unpack_row, value_in
from lastword.replica.store.store import Store
from lastword.serve.http.answers import COMMON, Answer, Refused, answered_at
from lastword.serve.http.etags import is_among
from lastword.serve.tables.served_table import ServedTable

# (key, stored row, key codec, value codec) -> what is answered
RowBody = Callable[[bytes, bytes, Codec, Codec], bytes]

_TOPIC_LETTERS = 8


def row_body(key: bytes, raw: bytes, key_codec: Codec, value_codec: Codec) -> bytes:
    """The row as JSON with its place and any headers; bytes that a codec can't read as base64 with the reason."""
    partition, offset, timestamp, flags = ROW_HEAD.unpack_from(raw)
    if not flags & POISON:
        try:
            return b'{"key":%b,"value":%b,"partition":%d,"offset":%d,"timestamp":%d%b}' % (
                key_codec.to_json(key),
                _value_json(raw, value_codec),
                partition,
                offset,
                timestamp,
                headers_field(headers_in(raw)) if flags else b"",
            )
        except DecodeError:
            pass  # it is the key that can't be read
    return row_json(unpack_row(key, raw), key_codec, value_codec, placed=True)


def value_body(key: bytes, raw: bytes, key_codec: Codec, value_codec: Codec) -> bytes:
    """The value alone, as JSON; where the codec can't read it, the whole row that says so."""
    if is_poison(raw):
        return row_body(key, raw, key_codec, value_codec)
    return _value_json(raw, value_codec)


def point_read(table: ServedTable, key: bytes, if_none_match: str | None, body: RowBody = row_body) -> Answer:
    """The row of a key; 304 where the asker has it already, Refused where there is none."""
    topic_id, position, raw = table.ask(lambda store: _found(store, key))
    at = answered_at(position)
    if raw is None:
        hint = f"keys are percent-encoded; those that are there are listed at /tables/{table.name}/rows"
        raise Refused("key_not_found", f"the table {table.name} has no row of this key", hint, [at])
    partition, offset, _, _ = ROW_HEAD.unpack_from(raw)
    tag = f'"{topic_id[:_TOPIC_LETTERS]}-{partition}-{offset}"'
    if if_none_match is not None and is_among(tag, if_none_match):
        return Answer(304, [("etag", tag), at], b"")
    return Answer(200, [*COMMON, ("etag", tag), at], body(key, raw, table.key_codec, table.value_codec))


def _found(store: Store, key: bytes) -> tuple[str, Position, bytes | None]:
    # The position first: rows may be newer than it, never older.
    return store.topic_id, store.position, store.rows.get(key)


def _value_json(raw: bytes, codec: Codec) -> bytes:
    value = value_in(raw)
    # Found to be JSON when it was stored: what was not is marked as poison.
    return value if codec.name == "json" else codec.to_json(value)
