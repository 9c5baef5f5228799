"""How many users to write now: at a steady rate, by a clock that also runs during writes, or as fast as possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

_TICK_S = 0.01
# A longer delay is not made up for: all those users would come as one burst.
_MOST_BEHIND_S = 1.0
_AT_ONCE = 1000


def steady(
    per_second: float,
    stopped: Callable[[], bool],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[int]:
    """How many users are due, about every 10 ms, until `stopped`; a slow tick is made up for by the next one."""
    began, given = clock(), 0
    while not stopped():
        elapsed = clock() - began
        too_late = elapsed - given / per_second - _MOST_BEHIND_S
        if too_late > 0:
            began += too_late
            elapsed -= too_late
        due = int(elapsed * per_second) + 1 - given
        if due > 0:
            given += due
            yield due
        sleep(_TICK_S)


def unpaced(stopped: Callable[[], bool]) -> Iterator[int]:
    """The same number again and again, until `stopped`."""
    while not stopped():
        yield _AT_ONCE
