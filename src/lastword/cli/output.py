"""What people see: tables that line up, progress on a terminal, colours only there, and JSON for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from lastword.core.codecs import Codec
from lastword.core.errors import DecodeError


def note(line: str) -> None:
    """A line for the person, apart from the data."""
    print(f"lastword: {line}", file=sys.stderr)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def styled(text: str, style: str) -> str:
    """`text` in a style (dim, bold, red, green, yellow) on a terminal, plain anywhere else."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    code = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}[style]
    return f"\x1b[{code}m{text}\x1b[0m"


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[bool] | None = None
) -> None:
    """Columns that line up: numbers to the right, text to the left; the last column is cut at a terminal's edge.

    `numeric` says which columns hold numbers, where these are text already.
    """
    table = [list(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in table]
    if numeric is None:
        numeric = [all(isinstance(row[i], int | float | None) for row in table) for i in range(len(headers))]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(headers)]
    edge = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for index, row in enumerate([list(headers), *cells]):
        parts = [
            text.rjust(widths[i]) if numeric[i] else text.ljust(widths[i]) if i < len(row) - 1 else text
            for i, text in enumerate(row)
        ]
        line = "  ".join(parts).rstrip()
        if edge and len(line) > edge:
            line = line[: edge - 1] + "…"
        print(styled(line, "bold") if index == 0 else line)


def shown(raw: bytes | None, codec: Codec) -> str:
    """A key or value as a person reads it; what the codec can't read says why instead of showing garbage."""
    if raw is None:
        return "<tombstone>"
    try:
        text = codec.decode(raw) if codec.name == "string" else codec.to_json(raw).decode()
    except DecodeError as damage:
        return f"<{damage}>"
    return printable(text)


def printable(text: str) -> str:
    """The text on one line, with what would move the cursor or hide itself written as an escape."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def when(timestamp_ms: int) -> str:
    """A record's time in UTC, or `-` for a record without one."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"


def size(count: int | None) -> str:
    """Bytes in a unit that reads well; `?` for what is not known."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


class ProgressLine:
    """One line on stderr that is written over, on a terminal only; silent in a pipe."""

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._drawn_at = 0.0
        self._began = time.monotonic()
        self._said = ""

    def line(self, text: str) -> None:
        """Shows `text` in place of what was shown before; in a pipe, lines that differ only in numbers appear once."""
        kind = "".join(letter for letter in text if not letter.isdigit())
        if self._live:
            self._draw(text)
        elif kind != self._said:
            self._said = kind
            note(text)

    def step(self, text: str) -> None:
        """Shows where long work stands, on a terminal only."""
        if self._live:
            self._draw(text)

    def count(self, done: int, total: int | None = None) -> None:
        """Shows how many are done and how fast; with a total also a bar."""
        self.share(done, done / total if total else None)

    def share(self, done: int, share: float | None) -> None:
        """Shows a count beside a bar for the share of the work that is done, from 0 to 1."""
        now = time.monotonic()
        if not self._live or now - self._drawn_at < 0.1:
            return
        self._drawn_at = now
        rate = done / max(0.001, now - self._began)
        bar = "" if share is None else f"[{'#' * round(20 * share):<20}] {share:>4.0%} "
        self._draw(f"{self._label} {bar}{done:,}, {rate:,.0f}/s")

    def clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self, text: str) -> None:
        edge = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[K" + text[:edge])
        sys.stderr.flush()


def _cell(value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def counted(number: int, thing: str) -> str:
    """`1 row`, `3 rows`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
