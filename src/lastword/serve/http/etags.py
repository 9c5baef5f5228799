"""Entity tags: the tag of a row, of a file and of a compressed answer, and whether a client already has the answer."""

from __future__ import annotations

import hashlib

# Enough of a topic's id to tell it from a later topic of the same name.
_TOPIC_LETTERS = 8


def row_tag(topic_id: str, partition: int, offset: int) -> str:
    """Changes with every write of the key: a record has its offset for ever."""
    return f'"{topic_id[:_TOPIC_LETTERS]}-{partition}-{offset}"'


def file_tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def weak(tag: str) -> str:
    """The tag of the same content in other bytes, compressed ones for example."""
    return f"W/{tag}"


def is_among(tag: str, if_none_match: str) -> bool:
    """Whether a list of entity tags names this tag; a weak tag counts too, because the client asks for the content."""
    tags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in tags or tags == ["*"]
