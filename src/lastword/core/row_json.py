"""Rows as lines of text: the JSON shape of a row, everywhere the same, and the `key:value` lines that `load` reads.

In JSON a row is `{"key": ..., "value": ...}` with partition, offset, timestamp and headers where they are known. A
tombstone is `{"key": ..., "tombstone": true}`; `"value": null` is the JSON value null. Bytes that the codec can't
read appear as `key_base64` or `value_base64` beside a `decode_error`, and are read back from there. So `load` restores
what `dump` writes: raw bytes to the byte, JSON to the token (space around a value and line breaks in it may go).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import msgspec

from lastword.core.codecs import Codec
from lastword.core.errors import BadInput, BadLine, DecodeError
from lastword.core.headers import headers_field, headers_of_json, unbase64
from lastword.core.record import Headers, Record
from lastword.core.shapes.rows import RowLine

_text = msgspec.json.Encoder()


class Write(msgspec.Struct, frozen=True, gc=False):
    """The write of one line: a put, or a delete if the value is None."""

    key: bytes
    value: bytes | None
    headers: Headers = ()


class _PlainLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The shape of nearly every line: it decodes in half the time of the whole shape, `RowLine`."""

    key: str
    value: msgspec.Raw


# Twice the largest record: room for base64, and for characters that JSON writes as escapes.
MAX_LINE_BYTES = 128 * 1024 * 1024
NO_KEY = "the key is empty: a compacted topic needs a key in every record"
_decoder = msgspec.json.Decoder(RowLine)
_plain_decoder = msgspec.json.Decoder(_PlainLine)


def row_json(record: Record, key_codec: Codec, value_codec: Codec, *, placed: bool) -> bytes:
    """One row as JSON without the line's end; `placed` adds partition, offset and timestamp."""
    key, value, rest = record.key, record.value, b""
    if placed:
        rest = b',"partition":%d,"offset":%d,"timestamp":%d' % (record.partition, record.offset, record.timestamp)
    if record.headers:
        rest += headers_field(record.headers)
    if key is not None and value is not None:
        try:
            return b'{"key":%b,"value":%b%b}' % (key_codec.to_json(key), value_codec.to_json(value), rest)
        except DecodeError:
            pass  # the slower code below finds out which of the two it was
    key_field = b'"key":null' if key is None else _field(b"key", key, key_codec)
    value_field = b'"tombstone":true' if value is None else _field(b"value", value, value_codec)
    return b"{%b,%b%b}" % (key_field, value_field, rest)


def lines_of(file: BinaryIO, most_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a file with their line ends; BadLine for a line that is too long, without reading the rest of it."""
    for number, line in enumerate(iter(partial(file.readline, most_bytes + 1), b""), 1):
        if len(line) > most_bytes:
            raise BadLine(number, f"longer than {most_bytes:,} bytes: a row is one line, and every line ends in \\n")
        yield line


def write_of_json_line(line: bytes, number: int, key_codec: Codec, value_codec: Codec) -> Write:
    """The write of a JSON line; BadLine names its mistake."""
    try:
        # The decoder does not look into the text of a value, so UTF-8 is checked here.
        line.isascii() or line.decode()
    except UnicodeDecodeError as damage:
        raise BadLine(number, f"not UTF-8 text ({damage.reason} at byte {damage.start}): use value_base64") from None
    if key_codec.name == "string":
        try:
            plain = _plain_decoder.decode(line)
            # The string codec can read every other key back.
            if plain.key and plain.key[0] != "\0":
                return Write(plain.key.encode(), value_codec.from_json(plain.value))
        except (msgspec.MsgspecError, UnicodeError, RecursionError, BadInput):
            pass  # a tombstone, headers, base64, or a mistake: the whole shape reads the line or names the mistake
    try:
        row = _decoder.decode(line)
        key = _bytes_of("key", row.key, row.key_base64, key_codec)
        if row.tombstone:
            if row.value is not msgspec.UNSET or row.value_base64 is not msgspec.UNSET:
                raise BadInput('has both "value" and "tombstone": keep one of them')
            value = None
        else:
            value = _bytes_of("value", row.value, row.value_base64, value_codec)
            if row.key_base64 is msgspec.UNSET:
                key_codec.checked_key(key)
        headers = headers_of_json(row.headers) if row.headers else ()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as damage:
        raise BadLine(number, f'{damage}: a row is {{"key": ..., "value": ...}} on one line') from None
    except BadInput as refusal:
        raise BadLine(number, str(refusal)) from None
    if not key:
        raise BadLine(number, NO_KEY)
    return Write(key, value, headers)


def write_of_kv_line(
    line: bytes, number: int, key_codec: Codec, value_codec: Codec, *, separator: str, null_marker: str | None
) -> Write:
    """The write of a `key:value` line; a tombstone only if a null marker is given and is the whole value."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise BadLine(number, "not UTF-8 text: use JSON lines with value_base64 for raw bytes") from None
    key, separated, value = text.partition(separator)
    if not separated:
        raise BadLine(number, f"no {separator!r} between key and value: write it like user-1{separator}5")
    if not key:
        raise BadLine(number, NO_KEY)
    try:
        raw = None if null_marker is not None and value == null_marker else value_codec.parse(value)
        encoded = key_codec.parse(key)
        return Write(encoded if raw is None else key_codec.checked_key(encoded), raw)
    except BadInput as refusal:
        raise BadLine(number, str(refusal)) from None


def _field(name: bytes, raw: bytes, codec: Codec) -> bytes:
    try:
        return b'"%b":%b' % (name, codec.to_json(raw))
    except DecodeError as damage:
        encoded = base64.b64encode(raw)
        return b'"' + name + b'_base64":"' + encoded + b'","decode_error":' + _text.encode(str(damage))


def _bytes_of(name: str, plain: msgspec.Raw | msgspec.UnsetType, encoded: Any, codec: Codec) -> bytes:
    if encoded is not msgspec.UNSET:
        if not isinstance(plain, msgspec.UnsetType):
            raise BadInput(f'has both "{name}" and "{name}_base64": keep one of them')
        return unbase64(encoded)
    if isinstance(plain, msgspec.UnsetType):
        advice = 'add "value", or "tombstone": true to delete' if name == "value" else 'add "key"'
        raise BadInput(f'has no "{name}": {advice}')
    return codec.from_json(plain)
