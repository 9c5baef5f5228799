"""The wall clock, for times that are compared with those of other processes."""

from __future__ import annotations

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000
