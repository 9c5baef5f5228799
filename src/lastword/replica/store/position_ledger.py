"""The table's positions at moments of the past, to know whether all records after a position are young enough."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.core.position import Position

_ENTRIES = 64


class Ledger:
    """Moments and positions, oldest first: every record after the position was written after the moment."""

    def __init__(self, entries: Iterable[tuple[int, Position]] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> list[tuple[int, Position]]:
        return list(self._entries)

    def note(self, moment: int, position: Position, *, span_ms: int) -> bool:
        """Adds an entry if the last one is old enough, and returns whether it did; drops those older than `span_ms`."""
        if self._entries and moment - self._entries[-1][0] < span_ms / _ENTRIES:
            return False
        self._entries = [entry for entry in self._entries if entry[0] >= moment - span_ms]
        self._entries.append((moment, position))
        return True

    def all_after_is_younger(self, position: Position, moment: int) -> bool:
        """Whether every record after `position` is known to have been written after `moment`."""
        return any(at >= moment and position.covers(then) for at, then in self._entries)
