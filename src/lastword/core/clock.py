"""The wall clock, for moments that are compared with those of another process's life."""

from __future__ import annotations

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000
