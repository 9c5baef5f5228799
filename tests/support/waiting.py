"""Waiting for a condition, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], *, within_s: float = 120) -> None:
    """Waits until the condition holds, and fails after `within_s`, which is enough for a busy machine."""
    give_up_at = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up_at, f"the condition does not hold after {within_s} s"
        time.sleep(0.05)
