"""Waiting for something to become so, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], bool], *, within_s: float = 120) -> None:
    """Waits until it is so, and fails when it is not in time; the limit leaves time enough to a busy machine."""
    give_up_at = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up_at, f"still not so after {within_s} s"
        time.sleep(0.05)
