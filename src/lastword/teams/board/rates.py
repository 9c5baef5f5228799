"""How fast counters grow, over the last ten seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_OVER_S = 10.0
_LEAST_S = 1.0


class Rates:
    """Of several counters, by name; those that were not there yet began at `absent`. The clock is the caller's."""

    def __init__(self, *, absent: int | None = None) -> None:
        self._absent = absent
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque()

    def note(self, now: float, counters: Mapping[str, int]) -> None:
        if self._samples and now - self._samples[-1][0] < 0.5:
            return
        self._samples.append((now, dict(counters)))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _OVER_S:
            self._samples.popleft()

    def of(self, name: str) -> float | None:
        """A second; None while it was not watched for long enough, and for a counter that went back."""
        if not self._samples:
            return None
        (began, first), (ended, last) = self._samples[0], self._samples[-1]
        was, is_now = first.get(name, self._absent), last.get(name, self._absent)
        if ended - began < _LEAST_S or was is None or is_now is None or is_now < was:
            return None
        return round((is_now - was) / (ended - began), 1)
