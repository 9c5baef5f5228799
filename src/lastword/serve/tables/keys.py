"""Keys as an address has them: text, a number, JSON, or base64url for bytes."""

from __future__ import annotations

import base64
import binascii
import re

from lastword.core.codecs import Codec
from lastword.core.errors import BadInput
from lastword.serve.http.answers import Refused
from lastword.serve.http.limits import Limits

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def key_of(text: str, codec: Codec, limits: Limits) -> bytes:
    """The bytes of the key; Refused for an empty or long key, and for a key that the codec can't take."""
    key = _bytes_of(text, codec)
    if not key:
        raise _bad_key("the key is empty", "a row has a key of at least one byte")
    check_length(key, limits)
    return key


def check_length(key: bytes, limits: Limits) -> None:
    if len(key) > limits.key_bytes:
        raise Refused("key_too_long", f"the key has {len(key)} bytes", f"at most {limits.key_bytes} are taken")


def prefix_of(text: str, codec: Codec, limits: Limits) -> bytes:
    """The bytes that keys begin with; Refused for a codec in which a part of a key has no meaning."""
    if not text:
        return b""
    if codec.name not in ("string", "bytes"):
        raise Refused("bad_query", f"prefix is not for keys of the codec {codec.name}", "use start and end")
    return key_of(text, codec, limits)


def base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """The bytes; ValueError for text that is not base64url, with or without padding.

    The usual alphabet is taken too, in which rows show such keys.
    """
    text = text.replace("+", "-").replace("/", "_")
    if not _BASE64URL.fullmatch(text):
        raise ValueError
    bare = text.rstrip("=")
    raw = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    # Several texts decode to the same bytes. Only the text that lastword writes is taken, with or without padding.
    if base64url(raw) != bare or (text != bare and len(text) % 4):
        raise ValueError
    return raw


def _bytes_of(text: str, codec: Codec) -> bytes:
    if codec.name == "bytes":
        try:
            return from_base64url(text)
        except (ValueError, binascii.Error):
            raise _bad_key(
                "the key is not base64url", "this table has bytes as keys: write them as base64url"
            ) from None
    if codec.name == "int" and not _NUMBER.fullmatch(text):
        raise _bad_key("the key is not a whole number", "this table has numbers as keys: write it like 42")
    try:
        return codec.parse(text)
    except BadInput:
        raise _bad_key(f"not a key of the codec {codec.name}", "write the key as this table's codec takes it") from None


def _bad_key(message: str, hint: str) -> Refused:
    return Refused("bad_key", message, hint)
