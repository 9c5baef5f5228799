"""How fast counters grow, over the last ten seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_OVER_S = 10.0
_LEAST_S = 1.0


class Rates:
    """Of several counters, by name. The clock is the caller's."""

    def __init__(self) -> None:
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
        if ended - began < _LEAST_S or name not in first or name not in last or last[name] < first[name]:
            return None
        return round((last[name] - first[name]) / (ended - began), 1)
