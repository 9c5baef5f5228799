"""Decoding what was sent as the Struct that declares it: with every field of the Struct, and with no other."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

_Shape = TypeVar("_Shape", bound=msgspec.Struct)


def as_shape(body: bytes, shape: type[_Shape]) -> _Shape:
    """The body in its shape; an AssertionError for a field that the shape does not have."""
    decoded = msgspec.json.decode(body, type=shape)
    # Fields that are missing would be added by the encoder, fields that are unknown would be gone.
    assert json.loads(msgspec.json.encode(decoded)) == json.loads(body)
    return decoded
