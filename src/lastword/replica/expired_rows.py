"""Rows whose records have left the topic at its start, because retention or delete-records removed them.

The table is the fold of the records that the log holds, from the log start up to the position. A row is the newest
record of its key in a partition, so exactly the rows with an offset below the log start have to leave. A tombstone that
left removes nothing more.

No index leads to those rows, so a pass reads all of them. It runs in the thread that follows the topic, a slice at a
time, and following goes on between two slices. After a pass it rests for several times as long as the pass took,
because on a busy topic the log start moves often. Until the next pass a place's `log_start` is behind its
`topic_log_start`, and both are shown to whoever asks.

A crash in the middle of a pass leaves fewer rows and the old `log_start`: the next start begins the pass again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from lastword.replica.store.apply_batch import Applied
from lastword.replica.store.store import Store

# Between two looks at the clock.
_ROWS_UNTIMED = 100


class Leaving:
    """Removes the rows that have left, in slices of `slice_s`, with at most `rows_at_once` removed in a commit."""

    def __init__(
        self,
        store: Store,
        *,
        slice_s: float = 0.02,
        rows_at_once: int = 1000,
        rests: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._slice_s = slice_s
        self._rows_at_once = rows_at_once
        self._rests = rests
        self._clock = clock
        # Of the pass under way: the log starts that it removes up to, the next key to read, the time it took so far.
        self._goal: Mapping[int, int] = {}
        self._cursor = b""
        self._took_s = 0.0
        self._lowest: dict[int, int] = {}
        # By partition an offset below which there was no row after the last pass. New rows only have higher ones.
        self._no_row_below: Mapping[int, int] = {}
        self._rests_until = 0.0
        # Whether rows that left before the first look are still here.
        self.is_behind_first_look = True

    @property
    def is_under_way(self) -> bool:
        return bool(self._goal)

    def note(self, log_starts: Mapping[int, int]) -> None:
        """Keeps where the log starts by a look; a log start that went back with a change of leader is passed over."""
        moved = {}
        for partition, place in self._store.places.items():
            start = log_starts.get(partition, 0)
            if start <= place.topic_log_start:
                continue
            has_no_row_below = place.live_rows == 0 or start <= self._no_row_below.get(partition, 0)
            moved[partition] = place._replace(
                topic_log_start=start, log_start=start if has_no_row_below else place.log_start
            )
        if moved:
            self._store.apply([], moved)
        self.is_behind_first_look = self.is_behind_first_look and bool(self._pending())

    def step(self) -> Applied | None:
        """Does a slice of the work if some is due: what it removed, or None where that was nothing."""
        began = self._clock()
        if not self._goal and not self._begins(began):
            return None
        left, following = self._slice(until=began + self._slice_s)
        applied = self._store.remove_left(left, {} if following is not None else self._goal)
        now = self._clock()
        self._took_s += now - began
        if following is not None:
            self._cursor = following
        else:
            self._goal, self._no_row_below = {}, self._lowest
            self._rests_until = now + self._rests * self._took_s
            self.is_behind_first_look = False
        return applied if left else None

    def _begins(self, now: float) -> bool:
        if now >= self._rests_until:
            self._goal, self._cursor, self._took_s = self._pending(), b"", 0.0
            # What comes during the pass has this offset or a higher one.
            self._lowest = dict(self._store.position)
        return bool(self._goal)

    def _pending(self) -> dict[int, int]:
        places = self._store.places
        return {p: place.topic_log_start for p, place in places.items() if place.log_start < place.topic_log_start}

    def _slice(self, *, until: float) -> tuple[list[tuple[int, bytes]], bytes | None]:
        """(partition, key) of rows to remove, and the next key to read, or None after the last one.

        The rows of a slice are read and removed before any other write, and all rows of a key together: a row that is
        hidden behind one of another partition can't change places with it in between.
        """
        left: list[tuple[int, bytes]] = []
        goal, lowest = self._goal, self._lowest
        for number, (key, rows) in enumerate(self._store.live_rows(self._cursor), 1):
            is_late = number % _ROWS_UNTIMED == 0 and self._clock() >= until
            if is_late or len(left) >= self._rows_at_once:
                return left, key
            for partition, offset in rows:
                if offset < goal.get(partition, 0):
                    left.append((partition, key))
                # A partition that was added during the pass is not in it.
                elif offset < lowest.get(partition, 0):
                    lowest[partition] = offset
        return left, None
