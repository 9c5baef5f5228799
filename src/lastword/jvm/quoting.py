"""A text as one word in double quotes, as Java's argument files, JAAS entries and Spark's launcher all read it."""

from __future__ import annotations


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
