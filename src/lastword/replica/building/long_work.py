"""Work that takes long: an estimate of the time left, and its early end."""

from __future__ import annotations

import time


class Stopped(Exception):
    """Long work was stopped before it was done."""


class Pace:
    """Estimates the time left from the progress so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def seconds_left(self, done: int, total: int) -> float | None:
        """An estimate, or None while it is too early for an estimate."""
        elapsed = time.monotonic() - self._began
        return (total - done) * elapsed / done if done and elapsed > 0.5 else None
