"""Changes for those who watch. Each watcher has a bounded queue: the table never waits for a slow one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lastword.core.errors import HistoryLost, LastwordError
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.core.row import Row
from lastword.replica.edit import Applied


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a table shows since a record was read: a row, or a tombstone where there is none any more."""

    shown: Record
    # Where the record stood that caused it.
    partition: int
    offset: int
    swept: bool = False


class Watch(Iterator[Row]):
    """Rows as they change, until the replica is closed; `position` is where to go on after the last one given.

    A watcher that falls too far behind gets HistoryLost, as does one whose table was rebuilt. Whoever stops earlier
    closes it, or uses it with `with`.
    """

    def __init__(self, watchers: Watchers, queue: _Queue, start: Position, row: Callable[[Change], Row]) -> None:
        self._watchers = watchers
        self._queue = queue
        self._next = dict(start)
        self._row = row
        self._missed: Iterator[Change] = iter(())

    @property
    def position(self) -> Position:
        return Position(self._next)

    def begin_with(self, missed: Iterator[Change], position: Position) -> None:
        """Gives what came after `position` first."""
        self._missed = missed
        self._next = dict(position)

    def __next__(self) -> Row:
        change = next(self._missed, None) or self._queue.take()
        self._next[change.partition] = max(self._next.get(change.partition, 0), change.offset + 1)
        return self._row(change)

    def close(self) -> None:
        self._watchers.leave(self._queue)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Watchers:
    """Everyone who watches one replica, and the position up to which they have been told."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._queues: list[_Queue] = []
        self._told = Position()

    def publish(self, applied: Applied, position: Position, *, swept: bool = False) -> None:
        with self._lock:
            self._told = position
            if not self._queues:
                return
            changes = [
                Change(shown=shown, partition=cause.partition, offset=cause.offset, swept=swept)
                for cause, shown in applied.changes()
            ]
            self._queues = [each for each in self._queues if each.offer(changes)]

    def restart(self, position: Position, reason: str | None = None) -> None:
        """The table is another one from here on: with a reason, what has been told no longer leads to what it is."""
        with self._lock:
            self._told = position
            if reason is not None:
                self._end(HistoryLost(f"{reason}: the table was built again; start over from its rows"))

    def close(self, failure: LastwordError | None = None) -> None:
        with self._lock:
            self._end(failure)

    def join(self, row: Callable[[Change], Row]) -> Watch:
        """Changes from this moment on."""
        mine = _Queue(self._capacity)
        with self._lock:
            self._queues.append(mine)
            return Watch(self, mine, self._told, row)

    def leave(self, queue: _Queue) -> None:
        queue.end(None)
        with self._lock:
            if queue in self._queues:
                self._queues.remove(queue)

    def _end(self, failure: LastwordError | None) -> None:
        for each in self._queues:
            each.end(failure)
        self._queues.clear()


class _Queue:
    """Waiting changes of one watcher, then how it ends."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Change] = deque()
        self._arrived = threading.Condition()
        self._ended = False
        self._failure: LastwordError | None = None

    def offer(self, changes: list[Change]) -> bool:
        """Takes the changes, or ends this watch when they do not fit."""
        with self._arrived:
            if len(self._waiting) + len(changes) <= self._capacity:
                self._waiting.extend(changes)
                self._arrived.notify()
                return True
        self.end(
            HistoryLost(
                f"this watcher was more than {self._capacity} changes behind and was cut off: watch again from its "
                "position, and do less for each change"
            )
        )
        return False

    def end(self, failure: LastwordError | None) -> None:
        with self._arrived:
            self._ended, self._failure = True, failure
            self._arrived.notify()

    def take(self) -> Change:
        """The next change, as soon as there is one."""
        with self._arrived:
            while not self._waiting and not self._ended:
                self._arrived.wait()
            if self._waiting:
                return self._waiting.popleft()
            if self._failure is not None:
                raise self._failure
            raise StopIteration
