"""Rates over the last ten seconds, by the clock of the caller.

A counter that is read from time to time has a rate between two readings (`RecentSamples`). Events that are counted as
they happen have no readings: their rate must fall to 0 while nothing happens (`EventRate`).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

OVER_S = 10.0

_Sample = TypeVar("_Sample")


class RecentSamples(Generic[_Sample]):
    """The samples of the last ten seconds, and the newest one before them; always the last two."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, _Sample]] = deque()

    def add(self, at_s: float, sample: _Sample) -> None:
        self._samples.append((at_s, sample))
        while len(self._samples) > 2 and self._samples[1][0] <= at_s - OVER_S:
            self._samples.popleft()

    def clear(self) -> None:
        # Another deque, because other threads read this one meanwhile.
        self._samples = deque()

    @property
    def ends(self) -> tuple[tuple[float, _Sample], tuple[float, _Sample]] | None:
        """The first and the last sample, each with its time; None until there are two."""
        samples = self._samples
        return (samples[0], samples[-1]) if len(samples) > 1 else None


class EventRate:
    """How many events a second there were, on average over the last ten seconds."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def add(self, at_s: float, events: int) -> None:
        self._counts.append((at_s, events))

    def per_s(self, now_s: float) -> float:
        while self._counts and self._counts[0][0] < now_s - OVER_S:
            self._counts.popleft()
        return round(sum(events for _, events in self._counts) / OVER_S, 1)
