"""How fast counters grow, over the last ten seconds."""

from __future__ import annotations

from collections.abc import Mapping

from lastword.core.rates import RecentSamples

_LEAST_S = 1.0


class Rates:
    """The rates of several counters, by name; a missing counter counts as `absent`. The caller gives the time."""

    def __init__(self, *, absent: int | None = None) -> None:
        self._absent = absent
        self._samples = RecentSamples[Mapping[str, int]]()
        self._noted_at: float | None = None

    def note(self, now: float, counters: Mapping[str, int]) -> None:
        if self._noted_at is not None and now - self._noted_at < 0.5:
            return
        self._noted_at = now
        self._samples.add(now, dict(counters))

    def of(self, name: str) -> float | None:
        """The growth of a counter in a second; None while it was watched too briefly, or if it went back."""
        ends = self._samples.ends
        if ends is None:
            return None
        (began, first), (ended, last) = ends
        was, is_now = first.get(name, self._absent), last.get(name, self._absent)
        if ended - began < _LEAST_S or was is None or is_now is None or is_now < was:
            return None
        return round((is_now - was) / (ended - began), 1)
