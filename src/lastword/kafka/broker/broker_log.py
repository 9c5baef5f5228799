"""The log of a broker: its last lines, and the lines that explain why the broker died."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

# The lines of Kafka 4.3 when it removes records from a log that was not closed in order (LogLoader).
_CUT_OFF = re.compile(
    r"(partition=(?P<partition>[^,\]]+).*)?("
    r"Corruption found in segment \d+, truncating to offset (?P<end>\d+)"
    r"|Deleting the corrupt segment and creating an empty one with starting offset (?P<emptied>\d+)"
    r"|Deleting all segments because logEndOffset \((?P<all>\d+)\) is smaller than logStartOffset)"
)


def last_lines(path: Path, count: int, since: int) -> list[str]:
    """At most `count` lines, after the first `since` bytes; all of the file if it is smaller, because it was rolled."""
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
    """The lines without the frames of Java's stack traces: the error is in the line above the frames."""
    return [line for line in lines if line.strip() and not line.startswith(("\tat ", "\t... "))]


def refused_setting(lines: Sequence[str]) -> str | None:
    """Why Kafka refused a setting; None if that is not why it ended."""
    for line in lines:
        if found := re.search(r"ConfigException: (?P<why>.+)", line):
            return f"Kafka refuses a setting: {found['why']}: correct it with --set NAME=VALUE"
    return None


def cut_off(lines: Iterable[str]) -> list[str]:
    """The records that the broker removed when it recovered its logs, each as `PARTITION from offset N on`."""
    cuts: dict[str, int] = {}
    for line in lines:
        if found := _CUT_OFF.search(line):
            end = int(found["end"] or found["emptied"] or found["all"])
            name = found["partition"] or "a partition"
            cuts[name] = min(end, cuts.get(name, end))
    return [f"{name} from offset {end} on" for name, end in cuts.items()]
