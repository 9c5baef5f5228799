"""Changes for those who watch. Each watcher has a bounded queue: the table never waits for a slow one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from lastword.core.errors import FellBehind, HistoryLost, LastwordError
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.replica.store.apply_batch import Applied

_Shape = TypeVar("_Shape")

_MISSED_AT_A_TIME = 1000


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a table shows since a record was read: a row, or a tombstone where there is none any more."""

    shown: Record
    # Where the record stood that caused it.
    partition: int
    offset: int
    swept: bool = False


class Watch(Iterator[_Shape], Generic[_Shape]):
    """Rows as they change, until the replica is closed; `position` is where to go on after the last one given.

    A watcher that falls too far behind gets FellBehind, one whose table was rebuilt HistoryLost. Whoever stops earlier
    closes it, or uses it with `with`.
    """

    def __init__(
        self,
        watchers: Watchers,
        queue: WatchQueue,
        start: Position,
        shape: Callable[[Change], _Shape],
        missed: Iterator[Change] | None = None,
    ) -> None:
        self._watchers = watchers
        self._queue = queue
        self._next = dict(start)
        self._shape = shape
        # Comes before what waits; None once it is all given.
        self._missed = missed
        self._failure: LastwordError | None = None

    @property
    def position(self) -> Position:
        return Position(self._next)

    def __next__(self) -> _Shape:
        change = self._change(None)
        if change is None:
            raise StopIteration
        return change

    def poll(self, timeout_s: float = 0.0) -> _Shape | None:
        """The next change, or None when there is none within `timeout_s`, or none ever again (see `is_over`)."""
        return self._change(timeout_s)

    def poll_all(self, timeout_s: float) -> list[_Shape]:
        """The changes that wait, as soon as there is one; many at a time of those that were missed.

        `position` is then that of the table they lead to, also when none came: so a watcher of a quiet table goes on
        from a young position.
        """
        first = self._change(timeout_s)
        given = [] if first is None else [first]
        while self._missed is not None and len(given) < _MISSED_AT_A_TIME:
            change = self._next_missed()
            if change is not None:
                given.append(self._given(change))
        if self._missed is None:
            changes, told = self._queue.take_all()
            given.extend(map(self._given, changes))
            self._next.update((p, max(offset, self._next.get(p, 0))) for p, offset in told.items())
        return given

    @property
    def is_over(self) -> bool:
        return self._queue.is_over

    def _change(self, timeout_s: float | None) -> _Shape | None:
        if self._failure is not None:
            # What comes after a gap must not pass for all that came.
            raise self._failure
        try:
            change = self._next_missed() or self._queue.take(timeout_s)
        except LastwordError as failure:
            self._failure = failure
            raise
        return None if change is None else self._given(change)

    def _next_missed(self) -> Change | None:
        change = None if self._missed is None else next(self._missed, None)
        if change is None:
            self._missed = None
        return change

    def _given(self, change: Change) -> _Shape:
        self._next[change.partition] = max(self._next.get(change.partition, 0), change.offset + 1)
        return self._shape(change)

    def close(self) -> None:
        self._watchers.leave(self._queue)

    def __enter__(self) -> Watch[_Shape]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Watchers:
    """Everyone who watches one replica, and the position up to which they have been told."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # Reentrant: a watch that nobody closed leaves when it is collected, on whatever thread runs then.
        self._lock = threading.RLock()
        self._queues: list[WatchQueue] = []
        self._told = Position()
        self._ended = False
        self._failure: LastwordError | None = None

    def committing(self) -> AbstractContextManager[bool]:
        """Around the commit of a batch and its `publish`: nobody joins in between and gets what was there already."""
        return self._lock

    def publish(self, applied: Applied, position: Position, *, swept: bool = False) -> None:
        with self._lock:
            self._told = position
            if not self._queues:
                return
            changes = [
                Change(
                    shown=shown,
                    partition=cause.partition,
                    offset=cause.offset,
                    # What shows up from behind a ghost is no delete.
                    swept=swept and shown.is_tombstone,
                )
                for cause, shown in applied.changes()
            ]
            self._queues = [each for each in self._queues if each.offer(changes, position)]

    def restart(self, position: Position, reason: str | None = None) -> None:
        """The table is another one from here on: with a reason, what has been told no longer leads to what it is."""
        with self._lock:
            self._told = position
            if reason is not None:
                self._end(HistoryLost(f"{reason}: the table was built again; start over from its rows"))

    def go_on(self, position: Position, reason: str) -> None:
        """The store was opened again: those who watch go on where it stands as they were told, else they are ended."""
        told = self._told
        is_same = all(position.get(partition) == offset for partition, offset in told.items())
        self.restart(position, None if is_same else reason)

    def close(self, failure: LastwordError | None = None) -> None:
        with self._lock:
            self._ended, self._failure = True, failure
            self._end(failure)

    def join(self) -> tuple[WatchQueue, Position]:
        """Changes from this moment on, and the position that they start from; to be left again."""
        mine = WatchQueue(self._capacity)
        with self._lock:
            if self._ended:
                mine.end(self._failure)
            else:
                self._queues.append(mine)
            return mine, self._told

    def leave(self, queue: WatchQueue) -> None:
        queue.end(None)
        with self._lock:
            if queue in self._queues:
                self._queues.remove(queue)

    def _end(self, failure: LastwordError | None) -> None:
        for each in self._queues:
            each.end(failure)
        self._queues.clear()


class WatchQueue:
    """The changes that wait for one watcher, then how the watch ends."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Change] = deque()
        self._told = Position()
        self._arrived = threading.Condition()
        self._ended = False
        self._failure: LastwordError | None = None

    def offer(self, changes: list[Change], told: Position) -> bool:
        """Takes the changes that lead to a position, or ends this watch when they do not fit."""
        with self._arrived:
            if self._ended:
                return False
            if len(self._waiting) + len(changes) <= self._capacity:
                self._waiting.extend(changes)
                self._told = told
                self._arrived.notify()
                return True
        self.end(
            FellBehind(
                f"this watcher was more than {self._capacity} changes behind and was cut off: watch again from its "
                "position, and do less for each change"
            )
        )
        return False

    def end(self, failure: LastwordError | None) -> None:
        with self._arrived:
            self._ended, self._failure = True, failure
            self._arrived.notify()

    def take(self, timeout_s: float | None) -> Change | None:
        """The next change, as soon as there is one; None when there is none in time or none ever again."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self._ended, timeout_s)
            if self._waiting:
                return self._waiting.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def take_all(self) -> tuple[list[Change], Position]:
        """What waits, and the position that all changes taken so far lead to."""
        with self._arrived:
            taken = list(self._waiting)
            self._waiting.clear()
            return taken, self._told

    @property
    def is_over(self) -> bool:
        return self._ended and not self._waiting
