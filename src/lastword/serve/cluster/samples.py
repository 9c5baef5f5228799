"""Recent measurements in bounded memory: how fast offsets grow, and an hour of samples."""

from __future__ import annotations

from array import array
from typing import Generic, TypeVar

from msgspec import Struct

from lastword.core.rates import RecentSamples
from lastword.core.shapes.topics import MOST_SAMPLES

EVERY_S = 10.0
_UNKNOWN = -1


_Sample = TypeVar("_Sample", bound=Struct)


class Samples(Generic[_Sample]):
    """The last samples of one kind: a time and numbers of 0 or more, None for unknown. About 12 KB when full."""

    def __init__(self, kind: type[_Sample]) -> None:
        self._kind = kind
        self._width = len(kind.__struct_fields__)
        self._numbers = array("q")

    def add(self, sample: _Sample) -> None:
        numbers = (getattr(sample, name) for name in self._kind.__struct_fields__)
        added = array("q", [_UNKNOWN if number is None else number for number in numbers])
        # In one assignment, because other threads read it.
        self._numbers = (self._numbers + added)[-MOST_SAMPLES * self._width :]

    def oldest_first(self) -> list[_Sample]:
        numbers = [None if number == _UNKNOWN else number for number in self._numbers]
        return [self._kind(*numbers[i : i + self._width]) for i in range(0, len(numbers), self._width)]


class Growth:
    """How fast a number grows, over the last ten seconds, or over two looks that are further apart."""

    def __init__(self) -> None:
        self._samples = RecentSamples[int]()

    def seen(self, at_s: float, number: int | None) -> None:
        if number is None:
            # The earlier growth says nothing about the growth now.
            self._samples.clear()
            return
        self._samples.add(at_s, number)

    @property
    def per_s(self) -> float | None:
        """None until the number was seen twice, and while it is unknown."""
        ends = self._samples.ends
        if ends is None:
            return None
        (first_s, first), (last_s, last) = ends
        return round(max(0, last - first) / max(last_s - first_s, 0.001), 1)
