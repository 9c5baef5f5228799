"""Structs as the JSON text that people read in files and topics, and that later versions read again."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

_Shape = TypeVar("_Shape", bound=msgspec.Struct)


def json_text(shape: msgspec.Struct, *, indent: int | None = None, ascii_only: bool = True) -> str:
    """The Struct as JSON with spaces between the tokens.

    By the encoder of the standard library: it keeps a path that is not UTF-8, and numbers beyond 64 bits.
    """
    return json.dumps(msgspec.to_builtins(shape), indent=indent, ensure_ascii=ascii_only)


def from_json_text(text: str | bytes, shape: type[_Shape]) -> _Shape:
    """The Struct that the text has; ValueError says why if the text is damaged or has another shape."""
    try:
        return msgspec.convert(json.loads(text), type=shape)
    except (msgspec.MsgspecError, RecursionError) as damage:
        raise ValueError(str(damage)) from None
