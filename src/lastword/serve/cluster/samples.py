"""What was measured lately, in memory that is bounded: how fast offsets grow, and an hour of samples."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

# One each ten seconds, for an hour.
EVERY_S = 10.0
_MOST = 360
# The rate is taken over so many seconds, or over two looks where they are further apart.
_RATE_S = 10.0
_UNKNOWN = -1


class Samples:
    """The last samples of some numbers from 0 on; None for one that is not known. About 12 KB when it is full."""

    def __init__(self, *names: str) -> None:
        self._names = ("at", *names)
        self._numbers = array("q")

    def add(self, at: int, *numbers: int | None) -> None:
        added = array("q", [at, *(_UNKNOWN if number is None else number for number in numbers)])
        # As a whole: others read it meanwhile.
        self._numbers = (self._numbers + added)[-_MOST * len(self._names) :]

    def as_json(self) -> list[dict[str, Any]]:
        """The oldest first."""
        width, told = len(self._names), [None if number == _UNKNOWN else number for number in self._numbers]
        return [dict(zip(self._names, told[i : i + width], strict=True)) for i in range(0, len(told), width)]


class Growth:
    """How fast a number grows."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, at_s: float, number: int | None) -> None:
        if number is None:
            # Anew, and as a whole: others read it meanwhile. How fast it grew before is not how fast it grows.
            self._seen = deque()
            return
        self._seen.append((at_s, number))
        while len(self._seen) > 2 and self._seen[1][0] <= at_s - _RATE_S:
            self._seen.popleft()

    @property
    def per_s(self) -> float | None:
        """None until it was seen twice, and while it is not known."""
        seen = self._seen
        if len(seen) < 2:
            return None
        (first_s, first), (last_s, last) = seen[0], seen[-1]
        return round(max(0, last - first) / max(last_s - first_s, 0.001), 1)
