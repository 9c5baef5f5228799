"""What a verb prints: notes for the person, JSON for programs, tables that line up, colours on a terminal only."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec


def note(line: str) -> None:
    """A line for the person, apart from the data."""
    print(f"lastword: {line}", file=sys.stderr)


def print_line(line: bytes) -> None:
    """Prints a line of data unchanged, in any encoding."""
    sys.stdout.buffer.write(line + b"\n")


def print_json(line: Any) -> None:
    """A line of JSON, from a Struct or a dataclass."""
    print(json.dumps(msgspec.to_builtins(line), ensure_ascii=False))


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


def _cell(value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
