"""What brokers say: the end of a log, and what in it explains a death."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path


def last_lines(path: Path, count: int, since: int) -> list[str]:
    """At most `count` lines; `since` counts for nothing when the file is smaller by now, because it was rolled."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        first = since if since <= size else 0
        start, text = size, b""
        while start > first and text.count(b"\n") <= count:
            step = min(16_384, start - first)
            start -= step
            file.seek(start)
            text = file.read(step) + text
    lines = text.decode(errors="replace").splitlines()
    return lines[max(0, len(lines) - count) :]


def without_frames(lines: Sequence[str]) -> list[str]:
    """The lines without the frames of Java's stack traces: what went wrong stands above them."""
    return [line for line in lines if line.strip() and not line.startswith(("\tat ", "\t... "))]


def refused_setting(lines: Sequence[str]) -> str | None:
    """What Kafka had against a setting, when that is what ended it."""
    for line in lines:
        if found := re.search(r"ConfigException: (?P<why>.+)", line):
            return f"Kafka refuses a setting: {found['why']}: correct it with --set NAME=VALUE"
    return None
