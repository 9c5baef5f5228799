"""Watchers of a replica's changes. Each has a bounded queue: a slow watcher is cut off, the table never waits."""

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
    """The row that a table shows after a record was read, or a tombstone where it shows no row any more."""

    shown: Record
    # Of the record that caused the change.
    partition: int
    offset: int
    swept: bool = False


class Watch(Iterator[_Shape], Generic[_Shape]):
    """Rows as they change, until the replica is closed; `position` is where to continue after the last change.

    A watcher that falls too far behind gets FellBehind, and HistoryLost when the table was rebuilt. Close the watch, or
    use it with `with`.
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
        # The missed changes, older than those in the queue; None once all of them were returned.
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
        """The next change; None after `timeout_s`, or once the watch is over (see `is_over`)."""
        return self._change(timeout_s)

    def poll_all(self, timeout_s: float) -> list[_Shape]:
        """The queued changes, as soon as there is one; of missed changes many at a time.

        `position` is then the table's position after these changes, also when none came: so a watcher of a quiet table
        resumes from a recent position.
        """
        first = self._change(timeout_s)
        changes = [] if first is None else [first]
        while self._missed is not None and len(changes) < _MISSED_AT_A_TIME:
            change = self._next_missed()
            if change is not None:
                changes.append(self._shaped(change))
        if self._missed is None:
            queued, position = self._queue.take_all()
            changes.extend(map(self._shaped, queued))
            self._next.update((p, max(offset, self._next.get(p, 0))) for p, offset in position.items())
        return changes

    @property
    def is_over(self) -> bool:
        return self._queue.is_over

    def _change(self, timeout_s: float | None) -> _Shape | None:
        if self._failure is not None:
            # Changes after a gap must not look like all changes.
            raise self._failure
        try:
            change = self._next_missed() or self._queue.take(timeout_s)
        except LastwordError as failure:
            self._failure = failure
            raise
        return None if change is None else self._shaped(change)

    def _next_missed(self) -> Change | None:
        change = None if self._missed is None else next(self._missed, None)
        if change is None:
            self._missed = None
        return change

    def _shaped(self, change: Change) -> _Shape:
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
    """All watchers of one replica, and the position up to which changes were published."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # Reentrant: a watch that nobody closed leaves when it is garbage collected, in any thread.
        self._lock = threading.RLock()
        self._queues: list[WatchQueue] = []
        self._published = Position()
        self._ended = False
        self._failure: LastwordError | None = None

    def committing(self) -> AbstractContextManager[bool]:
        """Around the commit of a batch and its `publish`: no watcher joins in between and gets a change twice."""
        return self._lock

    def publish(self, applied: Applied, position: Position, *, swept: bool = False) -> None:
        with self._lock:
            self._published = position
            if not self._queues:
                return
            changes = [
                Change(
                    shown=shown,
                    partition=cause.partition,
                    offset=cause.offset,
                    # If a ghost hid a row of another partition, the sweep shows that row: no delete.
                    swept=swept and shown.is_tombstone,
                )
                for cause, shown in applied.changes()
            ]
            self._queues = [each for each in self._queues if each.offer(changes, position)]

    def restart(self, position: Position, reason: str | None = None) -> None:
        """The table was replaced. With a reason, published changes do not lead to its rows: all watches end."""
        with self._lock:
            self._published = position
            if reason is not None:
                self._end(HistoryLost(f"{reason}: the table was built again; start over from its rows"))

    def reopen(self, position: Position, reason: str) -> None:
        """The store was opened again. All watches end, unless the store is at the published position."""
        is_same = all(position.get(partition) == offset for partition, offset in self._published.items())
        self.restart(position, None if is_same else reason)

    def close(self, failure: LastwordError | None = None) -> None:
        with self._lock:
            self._ended, self._failure = True, failure
            self._end(failure)

    def join(self) -> tuple[WatchQueue, Position]:
        """A queue of the changes from now on, and the position that they start from; `leave` it at the end."""
        queue = WatchQueue(self._capacity)
        with self._lock:
            if self._ended:
                queue.end(self._failure)
            else:
                self._queues.append(queue)
            return queue, self._published

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
    """The changes that wait for one watcher, and the error that ends the watch."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Change] = deque()
        self._published = Position()
        self._arrived = threading.Condition()
        self._ended = False
        self._failure: LastwordError | None = None

    def offer(self, changes: list[Change], position: Position) -> bool:
        """Queues the changes that lead to a position, or ends this watch when they do not fit."""
        with self._arrived:
            if self._ended:
                return False
            if len(self._waiting) + len(changes) <= self._capacity:
                self._waiting.extend(changes)
                self._published = position
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
        """The next change, as soon as there is one; None after `timeout_s`, or once the watch is over."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self._ended, timeout_s)
            if self._waiting:
                return self._waiting.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def take_all(self) -> tuple[list[Change], Position]:
        """All waiting changes, and the position of the table after them."""
        with self._arrived:
            taken = list(self._waiting)
            self._waiting.clear()
            return taken, self._published

    @property
    def is_over(self) -> bool:
        return self._ended and not self._waiting
