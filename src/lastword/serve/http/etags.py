"""Entity tags: whether a client has already what would be sent."""

from __future__ import annotations


def is_among(tag: str, if_none_match: str) -> bool:
    """Whether a list of entity tags names this one; a weak one is as good, since the content is asked for."""
    tags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in tags or tags == ["*"]
