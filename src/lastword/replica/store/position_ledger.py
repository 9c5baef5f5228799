"""Where the table stood at moments of the past: tells whether everything after a position is younger than a moment."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.core.position import Position

_ENTRIES = 64


class Ledger:
    """Moments and positions, oldest first: what is after the position was written after the moment."""

    def __init__(self, entries: Iterable[tuple[int, Position]] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> list[tuple[int, Position]]:
        return list(self._entries)

    def note(self, moment: int, position: Position, *, span_ms: int) -> bool:
        """Whether the entry was worth keeping: enough of them to divide `span_ms`, and none that is older."""
        if self._entries and moment - self._entries[-1][0] < span_ms / _ENTRIES:
            return False
        self._entries = [entry for entry in self._entries if entry[0] >= moment - span_ms]
        self._entries.append((moment, position))
        return True

    def all_after_is_younger(self, position: Position, moment: int) -> bool:
        """Whether every record after `position` is known to have been written after `moment`."""
        return any(at >= moment and position.covers(stood) for at, stood in self._entries)
