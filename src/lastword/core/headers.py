"""A record's headers in their two forms: as JSON in rows and lines, and as bytes beside a value in a store.

In JSON they are a list of `[name, value]` pairs, because names may repeat and the order counts. A value is text, null,
or `{"base64": ...}` where its bytes are not UTF-8. As bytes they begin with their length, so that a
reader can skip them. Neither form loses anything.
"""

from __future__ import annotations

import base64
import binascii
import struct

import msgspec

from lastword.core.errors import BadInput
from lastword.core.record import Headers
from lastword.core.shapes.field_types import Base64, HeadersJson

_text = msgspec.json.Encoder()
_length = struct.Struct(">I")
_packed = msgspec.msgpack.Encoder()
_unpacked = msgspec.msgpack.Decoder(Headers)


def headers_field(headers: Headers) -> bytes:
    """The headers as the last field of a JSON row, after a comma; nothing for a record without headers."""
    if not headers:
        return b""
    return b',"headers":' + _text.encode([(name, _json_of(value)) for name, value in headers])


def headers_of_json(pairs: HeadersJson) -> Headers:
    """The headers of a JSON line; BadInput for a header that Kafka's client can't write."""
    return tuple((header_name(name), _bytes_of(value)) for name, value in pairs)


def header_name(name: str) -> str:
    """The name, if it has no null character: Kafka's client would cut the name there without an error."""
    if "\0" in name:
        raise BadInput(f"the header name {name!r} contains a null character: choose another name")
    return name


def pack_headers(headers: Headers) -> bytes:
    raw = _packed.encode(headers)
    return _length.pack(len(raw)) + raw


def unpack_headers(raw: bytes, at: int) -> Headers:
    """The packed headers that begin at `at`."""
    return _unpacked.decode(memoryview(raw)[at + _length.size : after_headers(raw, at)])


def after_headers(raw: bytes, at: int) -> int:
    """Where the packed headers that begin at `at` end."""
    return at + _length.size + int(_length.unpack_from(raw, at)[0])


def headers_size(headers: Headers) -> int:
    """About how many bytes they take."""
    return sum(len(name) + len(value or b"") for name, value in headers)


def unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"{text[:40]!r} is not base64: encode the bytes with  base64 -w0") from None


def _json_of(value: bytes | None) -> str | Base64 | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(base64.b64encode(value).decode())


def _bytes_of(value: str | Base64 | None) -> bytes | None:
    if isinstance(value, Base64):
        return unbase64(value.base64)
    return None if value is None else value.encode()
