"""One row as an answer: the stored bytes, wrapped in JSON without being decoded."""

from __future__ import annotations

from collections.abc import Callable

from lastword.core.codecs import Codec
from lastword.core.errors import DecodeError
from lastword.core.headers import headers_field
from lastword.core.row_json import row_json
from lastword.replica.reads import StoredRow
from lastword.serve.http.answers import COMMON, Answer, Refused, answered_at
from lastword.serve.http.etags import is_among, row_tag
from lastword.serve.tables.served_table import ServedTable

# (row, key codec, value codec) -> the bytes of the answer
RowBody = Callable[[StoredRow, Codec, Codec], bytes]


def row_body(row: StoredRow, key_codec: Codec, value_codec: Codec) -> bytes:
    """The row as JSON with its partition, offset and headers; unreadable bytes become base64 with the reason."""
    if not row.is_poison:
        try:
            return b'{"key":%b,"value":%b,"partition":%d,"offset":%d,"timestamp":%d%b}' % (
                key_codec.to_json(row.key),
                _value_json(row.value, value_codec),
                row.partition,
                row.offset,
                row.timestamp,
                headers_field(row.headers) if row.packed_headers else b"",
            )
        except DecodeError:
            pass  # the key can't be read, the value can
    return row_json(row.record(), key_codec, value_codec, placed=True)


def value_body(row: StoredRow, key_codec: Codec, value_codec: Codec) -> bytes:
    """The value alone, as JSON; a value that the codec can't read gives the whole row with the reason."""
    if row.is_poison:
        return row_body(row, key_codec, value_codec)
    return _value_json(row.value, value_codec)


def point_read(table: ServedTable, key: bytes, if_none_match: str | None, body: RowBody = row_body) -> Answer:
    """The row of a key; 304 when the client has this row already, Refused when there is none."""
    found = table.ask(lambda reads: reads.find(key))
    at, row = answered_at(found.position), found.row
    if row is None:
        hint = f"keys are percent-encoded; those that are there are listed at /tables/{table.name}/rows"
        raise Refused("key_not_found", f"the table {table.name} has no row of this key", hint, [at])
    tag = row_tag(found.topic_id, row.partition, row.offset)
    if if_none_match is not None and is_among(tag, if_none_match):
        return Answer(304, [("etag", tag), at], b"")
    return Answer(200, [*COMMON, ("etag", tag), at], body(row, table.key_codec, table.value_codec))


def _value_json(value: bytes, codec: Codec) -> bytes:
    # The value was checked when it was stored: one that is not JSON is marked as poison.
    return value if codec.name == "json" else codec.to_json(value)
