"""Codecs: how the bytes of keys and values are read and written.

    string   UTF-8 text                       the default of keys
    json     any JSON value                   the default of values
    bytes    raw bytes, base64 in text
    int      a signed integer, 8 bytes big-endian like Java's Long (4 bytes are read too)

Each codec converts three forms: Python objects (`encode`, `decode`), the text of a command line (`parse`), and JSON
for output and lines (`to_json`, `from_json`). The JSON form keeps the bytes of a JSON value: between a dump and a
load no number is rounded and no key reordered.

A key is written through `encode_key`, or through `checked_key` if it came as text or JSON: nobody could find a row
whose key its own codec can't read back.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from lastword.core.errors import BadInput, DecodeError
from lastword.core.nearest import did_you_mean

# One JSON value: bytes, or a part of a larger document that is not decoded yet.
Json = bytes | msgspec.Raw

_raw = msgspec.json.Decoder(msgspec.Raw)
_any = msgspec.json.Decoder()
_json_text = msgspec.json.Encoder()
_LF, _CR = b"\n\r"

# What msgspec raises for bytes that are no JSON.
_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Codec(Protocol):
    """Stateless, and safe to share between threads."""

    name: str

    def encode(self, value: Any) -> bytes:
        """The bytes of a Python object; BadInput for a type that this codec can't write."""

    def decode(self, raw: bytes) -> Any:
        """The Python object; DecodeError for bytes that are not this codec's."""

    def reads_all(self, values: Sequence[bytes]) -> bool:
        """Whether `decode` takes every one of these; False also where only a look at each value can tell."""
        return not values

    def parse(self, text: str) -> bytes:
        """The bytes of a text that a person typed; BadInput with a hint."""

    def to_json(self, raw: bytes) -> bytes:
        """JSON on one line; DecodeError for bytes that are not this codec's."""

    def from_json(self, raw: Json) -> bytes:
        """The bytes of a JSON value as `to_json` writes it; BadInput for any other."""

    def encode_key(self, key: Any) -> bytes:
        """The bytes of a Python object as a key; BadInput also for a key that is read back as another."""
        return self.checked_key(self.encode(key))

    def checked_key(self, raw: bytes) -> bytes:
        """The bytes, if they can be read back; BadInput if not."""
        self._read_back(raw)
        return raw

    def _read_back(self, raw: bytes) -> Any:
        try:
            return self.decode(raw)
        except DecodeError as damage:
            raise BadInput(f"the {self.name} codec can't read this key back ({damage}): choose another key") from None


class _String(Codec):
    name = "string"

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise BadInput(_wrong_type("string", "text", value))
        return self.parse(value)

    def decode(self, raw: bytes) -> str:
        _refuse_registry_frame(raw)
        try:
            return raw.decode()
        except UnicodeDecodeError as damage:
            raise DecodeError(f"not UTF-8 text ({damage.reason} at byte {damage.start})") from None

    def reads_all(self, values: Sequence[bytes]) -> bool:
        together = b"".join(values)
        return together.isascii() and b"\0" not in together

    def parse(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{text!r} is not valid Unicode text: write it as base64 with the bytes codec") from None

    def checked_key(self, raw: bytes) -> bytes:
        # Encoded text is always UTF-8, so only a schema registry's frame can be unreadable.
        return super().checked_key(raw) if raw[:1] == b"\0" else raw

    def to_json(self, raw: bytes) -> bytes:
        return _json_text.encode(self.decode(raw))

    def from_json(self, raw: Json) -> bytes:
        return self.encode(_decoded(raw))


class _Json(Codec):
    name = "json"

    def encode(self, value: Any) -> bytes:
        # The standard library's encoder: msgspec's turns NaN into null without an error.
        try:
            return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as refusal:
            raise BadInput(f"not a JSON value: {refusal}") from None

    def decode(self, raw: bytes) -> Any:
        _refuse_registry_frame(raw)
        try:
            return msgspec.json.decode(raw)
        except _NOT_JSON as damage:
            raise DecodeError(_not_json(raw, damage)) from None

    def reads_all(self, values: Sequence[bytes]) -> bool:
        try:
            # By map, in C, which keeps no decoded value. A registry's frame is no JSON in any case.
            deque(map(_any.decode, values), maxlen=0)
        except _NOT_JSON:
            return False
        return True

    def encode_key(self, key: Any) -> bytes:
        raw = self.encode(key)
        read = self._read_back(raw)
        if not _is_same(read, key):
            raise BadInput(
                f"the key {_shortened(str(key))} comes back from JSON as {_shortened(str(read))}: give it like that"
            )
        return raw

    def parse(self, text: str) -> bytes:
        raw = text.encode(errors="surrogatepass")
        try:
            return self.to_json(raw)
        except DecodeError:
            hint = f"quote text as '{json.dumps(text)}', or use the string codec (--value-codec, --key-codec)"
            raise BadInput(f"{_shortened(text)} is not JSON: {hint}") from None

    def to_json(self, raw: bytes) -> bytes:
        try:
            # Checks the JSON without decoding it. The decoder does not look into strings, so UTF-8 is checked here.
            _raw.decode(raw)
            raw.isascii() or raw.decode()
        except _NOT_JSON as damage:
            _refuse_registry_frame(raw)
            raise DecodeError(_not_json(raw, damage)) from None
        stripped = raw.strip()
        # Numbers, because the search for a byte as a number is seven times as fast, and a dump searches every row.
        return msgspec.json.format(stripped, indent=-1) if _LF in stripped or _CR in stripped else stripped

    def from_json(self, raw: Json) -> bytes:
        return bytes(raw)


class _Bytes(Codec):
    name = "bytes"

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise BadInput(_wrong_type("bytes", "bytes", value))
        return bytes(value)

    def decode(self, raw: bytes) -> bytes:
        return raw

    def reads_all(self, values: Sequence[bytes]) -> bool:  # noqa: ARG002  it takes any bytes
        return True

    def parse(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput(f"{_shortened(text)} is not base64: encode the bytes with  base64 -w0") from None

    def to_json(self, raw: bytes) -> bytes:
        return b'"' + base64.b64encode(raw) + b'"'

    def from_json(self, raw: Json) -> bytes:
        text = _decoded(raw)
        if not isinstance(text, str):
            raise BadInput("the bytes codec takes base64 text: write the value as a JSON string of base64")
        return self.parse(text)


class _Int(Codec):
    name = "int"

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadInput(_wrong_type("int", "a whole number", value))
        try:
            return value.to_bytes(8, "big", signed=True)
        except OverflowError:
            raise BadInput(f"{value} does not fit into 8 bytes: use the string or json codec") from None

    def decode(self, raw: bytes) -> int:
        if len(raw) not in (4, 8):
            raise DecodeError(f"not an int: {len(raw)} bytes instead of 8 or 4")
        return int.from_bytes(raw, "big", signed=True)

    def parse(self, text: str) -> bytes:
        try:
            return self.encode(int(text))
        except ValueError:
            raise BadInput(f"{_shortened(text)} is not a whole number: write it like 42") from None

    def to_json(self, raw: bytes) -> bytes:
        return str(self.decode(raw)).encode()

    def from_json(self, raw: Json) -> bytes:
        return self.encode(_decoded(raw))


CODECS: dict[str, Codec] = {codec.name: codec for codec in (_String(), _Json(), _Bytes(), _Int())}


def codec_named(name: str) -> Codec:
    try:
        return CODECS[name]
    except KeyError:
        names = ", ".join(CODECS)
        raise BadInput(f"no codec {name!r}: {did_you_mean(name, CODECS) or f'choose one of {names}'}") from None


def readable_by(codec: Codec) -> Callable[[bytes], bool]:
    """A function that says whether the codec can read some bytes."""
    decode = codec.decode

    def readable(raw: bytes) -> bool:
        try:
            decode(raw)
        except DecodeError:
            return False
        return True

    return readable


def _is_same(read: Any, written: Any) -> bool:
    """Whether the JSON value that was read back equals the written one; a tuple equals a list."""
    if isinstance(written, list | tuple):
        return isinstance(read, list) and len(read) == len(written) and all(map(_is_same, read, written))
    if isinstance(written, dict):
        return read.keys() == written.keys() and all(_is_same(read[name], written[name]) for name in written)
    return bool(read == written)


def _wrong_type(codec: str, taken: str, value: Any) -> str:
    return (
        f"the {codec} codec takes {taken}, not {type(value).__name__}: pass {taken}, or choose another codec "
        "(--key-codec, --value-codec; in Python key=, value=)"
    )


def _refuse_registry_frame(raw: bytes) -> None:
    """A schema registry's frame is the byte 0 and a 4-byte schema id; text and JSON never start with the byte 0."""
    if len(raw) >= 5 and raw[0] == 0:
        schema_id = int.from_bytes(raw[1:5], "big")
        raise DecodeError(
            f"schema registry frame, schema id {schema_id}, {len(raw) - 5} bytes: lastword does not decode these yet; "
            "show the raw bytes with --value-codec bytes"
        )


def _decoded(raw: Json) -> Any:
    try:
        return _any.decode(raw)
    except _NOT_JSON as damage:
        raise BadInput(_not_json(raw, damage)) from None


def _not_json(raw: Json, damage: Exception) -> str:
    if not raw:
        return "not JSON: empty (an empty value is not a tombstone)"
    return f"not JSON: {str(damage).removeprefix('JSON is malformed: ')}"


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
