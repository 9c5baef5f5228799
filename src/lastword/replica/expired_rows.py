"""Rows whose records have left the topic at its start, because retention or delete-records removed them.

The table is the fold of the records that the log holds, from the log start up to the position. A row is the newest
record of its key in a partition, so exactly the rows with an offset below the log start have to leave. A tombstone that
left removes nothing more.

No index leads to those rows, so a pass reads all of them. It runs in the thread that follows the topic, a slice at a
time, and following continues between two slices. After a pass it pauses for several times as long as the pass took,
because on a busy topic the log start moves often. Until the next pass the `log_start` of a partition
is behind its `topic_log_start`, and the table's status shows both.

A crash in the middle of a pass leaves fewer rows and the old `log_start`: the next start begins the pass again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from lastword.replica.store.apply_batch import Applied
from lastword.replica.store.store import Store

# Rows between two checks of the clock.
_ROWS_UNTIMED = 100


class ExpiredRows:
    """Removes the expired rows, in slices of `slice_s`, with at most `rows_at_once` removed in a commit.

    After a pass it pauses for `pause_factor` times as long as the pass took.
    """

    def __init__(
        self,
        store: Store,
        *,
        slice_s: float = 0.02,
        rows_at_once: int = 1000,
        pause_factor: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._slice_s = slice_s
        self._rows_at_once = rows_at_once
        self._pause_factor = pause_factor
        self._clock = clock
        # Of the pass under way: the log starts up to which it removes, the next key to read, and the time so far.
        self._goal: Mapping[int, int] = {}
        self._cursor = b""
        self._took_s = 0.0
        self._lowest: dict[int, int] = {}
        # By partition an offset below which there was no row after the last pass. New rows only have higher ones.
        self._no_row_below: Mapping[int, int] = {}
        self._paused_until = 0.0
        # Whether rows may still be here whose records had left the topic before the first look.
        self.is_behind_first_look = True

    @property
    def is_under_way(self) -> bool:
        return bool(self._goal)

    def note(self, log_starts: Mapping[int, int]) -> None:
        """Notes where the log starts; a log start that went back with a change of leader is ignored."""
        moved = {}
        for partition, state in self._store.partitions.items():
            start = log_starts.get(partition, 0)
            if start <= state.topic_log_start:
                continue
            has_no_row_below = state.live_rows == 0 or start <= self._no_row_below.get(partition, 0)
            moved[partition] = state._replace(
                topic_log_start=start, log_start=start if has_no_row_below else state.log_start
            )
        if moved:
            self._store.apply([], moved)
        self.is_behind_first_look = self.is_behind_first_look and bool(self._pending())

    def step(self) -> Applied | None:
        """Does a slice of the work if some is due. Returns the removed rows; None if there are none."""
        began = self._clock()
        if not self._goal and not self._begins(began):
            return None
        expired, following = self._slice(until=began + self._slice_s)
        applied = self._store.remove_expired(expired, {} if following is not None else self._goal)
        now = self._clock()
        self._took_s += now - began
        if following is not None:
            self._cursor = following
        else:
            self._goal, self._no_row_below = {}, self._lowest
            self._paused_until = now + self._pause_factor * self._took_s
            self.is_behind_first_look = False
        return applied if expired else None

    def _begins(self, now: float) -> bool:
        if now >= self._paused_until:
            self._goal, self._cursor, self._took_s = self._pending(), b"", 0.0
            # A row that comes during the pass has this offset or a higher one.
            self._lowest = dict(self._store.position)
        return bool(self._goal)

    def _pending(self) -> dict[int, int]:
        partitions = self._store.partitions
        return {p: state.topic_log_start for p, state in partitions.items() if state.log_start < state.topic_log_start}

    def _slice(self, *, until: float) -> tuple[list[tuple[int, bytes]], bytes | None]:
        """(partition, key) of rows to remove, and the next key to read, or None after the last one.

        The rows of a slice are read and removed before any other write, and all rows of a key together: a row that is
        hidden behind a row of another partition can't become the shown one in between.
        """
        expired: list[tuple[int, bytes]] = []
        goal, lowest = self._goal, self._lowest
        for number, (key, rows) in enumerate(self._store.live_rows(self._cursor), 1):
            is_late = number % _ROWS_UNTIMED == 0 and self._clock() >= until
            if is_late or len(expired) >= self._rows_at_once:
                return expired, key
            for partition, offset in rows:
                if offset < goal.get(partition, 0):
                    expired.append((partition, key))
                # A partition that was added during the pass is not in `lowest`.
                elif offset < lowest.get(partition, 0):
                    lowest[partition] = offset
        return expired, None
