"""Work that takes long: how far it is, and that it was told to end."""

from __future__ import annotations

import time


class Stopped(Exception):
    """Long work was told to end before it was done."""


class Pace:
    """How long something takes, by how far it came so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def seconds_left(self, done: int, total: int) -> float | None:
        """An estimate, or None while it is too early for one."""
        elapsed = time.monotonic() - self._began
        return (total - done) * elapsed / done if done and elapsed > 0.5 else None
