"""The progress of a long task: one line on a terminal that is overwritten."""

from __future__ import annotations

import shutil
import sys
import time

from lastword.cli.output import note


class ProgressLine:
    """A line on stderr that is overwritten, on a terminal only."""

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._drawn_at = 0.0
        self._began = time.monotonic()
        self._last_kind = ""

    def line(self, text: str) -> None:
        """Replaces the line on a terminal; in a pipe, prints one of several lines that differ only in numbers."""
        kind = "".join(letter for letter in text if not letter.isdigit())
        if self._live:
            self._draw(text)
        elif kind != self._last_kind:
            self._last_kind = kind
            note(text)

    def step(self, text: str) -> None:
        """Shows the step of a long task, on a terminal only."""
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
