"""What was measured lately, in memory that is bounded: how fast offsets grow, and an hour of samples."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Generic, TypeVar

from msgspec import Struct

from lastword.core.shapes.topics import MOST_SAMPLES

EVERY_S = 10.0
# The rate is taken over so many seconds, or over two looks where they are further apart.
_RATE_S = 10.0
_UNKNOWN = -1


_Sample = TypeVar("_Sample", bound=Struct)


class Samples(Generic[_Sample]):
    """The last samples of one kind: a time and numbers from 0 on, None for an unknown one. About 12 KB when full."""

    def __init__(self, kind: type[_Sample]) -> None:
        self._kind = kind
        self._width = len(kind.__struct_fields__)
        self._numbers = array("q")

    def add(self, sample: _Sample) -> None:
        numbers = (getattr(sample, name) for name in self._kind.__struct_fields__)
        added = array("q", [_UNKNOWN if number is None else number for number in numbers])
        # As a whole: others read it meanwhile.
        self._numbers = (self._numbers + added)[-MOST_SAMPLES * self._width :]

    def oldest_first(self) -> list[_Sample]:
        numbers = [None if number == _UNKNOWN else number for number in self._numbers]
        return [self._kind(*numbers[i : i + self._width]) for i in range(0, len(numbers), self._width)]


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
