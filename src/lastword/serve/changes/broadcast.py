"""The newest changes of one table as events, made once for all subscribers.

All subscribers read the same bounded list of events, each from its own place. So a slow subscriber costs no extra
memory. A subscriber whose place has been dropped has fallen behind.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from lastword.core.errors import (
    BadInput,
    ClusterUnreachable,
    FellBehind,
    HistoryLost,
    LastwordError,
    NotReady,
    StoreDamaged,
)
from lastword.core.position import Position
from lastword.processes.background_loop import BackgroundLoop
from lastword.replica.replica import Replica
from lastword.replica.watching import Change
from lastword.serve.changes.events import reset_event
from lastword.serve.http.answers import Refused, stopping

# (a change, the position of the table after it) -> its event
EventOf = Callable[[Change, str], bytes]

# The least time between two wake-ups of the subscribers: changes in between go out together.
_PACE_S = 0.01
_PIECE_BYTES = 64 * 1024
_PIECE_PACE_S = 0.001
_LOOK_EVERY_S = 0.2

_log = logging.getLogger(__name__)


def failed() -> Refused:
    return Refused("table_failed", "the table failed and can't recover without help")


class StreamPlace(NamedTuple):
    """Where a subscriber continues: the number of the next piece, the position before it, the build of the table."""

    number: int
    position: Position
    building: int


class _Piece(NamedTuple):
    events: bytes
    # After them.
    place: StreamPlace


class Broadcast:
    """Follows the table in its own thread until `close`; the other methods are for one event loop."""

    def __init__(self, replica: Replica, event_of: EventOf, *, most_bytes: int) -> None:
        self._replica = replica
        self._event_of = event_of
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        # Called in the event loop when there may be new events.
        self.subscribers: set[Callable[[], None]] = set()
        # Why no more events will come; None while they may.
        self.ended: Callable[[], Refused] | None = None
        self._background = BackgroundLoop(f"changes of {replica.topic}", self._run)
        self._watch = replica.changes(None, _as_it_is)
        self._lock = threading.Lock()
        self._pieces: deque[_Piece] = deque()
        self._bytes = 0
        self._now = StreamPlace(0, self._watch.position, 0)
        self._background.start()

    @property
    def now(self) -> StreamPlace:
        """Where a subscriber begins that wants only new changes."""
        return self._now

    def holds(self, place: StreamPlace) -> bool:
        """Whether every event after a place is still there."""
        with self._lock:
            return place.number >= self._first

    def after(self, place: StreamPlace) -> tuple[bytes, StreamPlace] | None:
        """The next events and the place after them, or None while there are none; FellBehind when they are gone."""
        with self._lock:
            index = place.number - self._first
            if index < 0:
                raise FellBehind(f"more than {self._most_bytes} bytes of changes came since")
            return self._pieces[index] if index < len(self._pieces) else None

    def close(self) -> None:
        """Ends the broadcast for all subscribers, once they have taken the events that are there."""
        self._background.ask_to_stop()
        self._watch.close()
        self.ended = self.ended or stopping
        self._tell()

    @property
    def _first(self) -> int:
        return self._now.number - len(self._pieces)

    def _run(self) -> None:
        try:
            while not self._background.is_stopping:
                try:
                    self._follow()
                except FellBehind:
                    self._go_on()
                except (HistoryLost, StoreDamaged):
                    self._start_over()
        except LastwordError:
            self._end(failed)
        except Exception:
            _log.exception("the changes of %s", self._replica.topic)
            self._end(failed)
        finally:
            self._watch.close()

    def _follow(self) -> None:
        while not self._background.is_stopping:
            changes = self._watch.poll_all(_LOOK_EVERY_S)
            began = time.monotonic()
            if changes:
                self._pass_on(changes)
                self._background.rest(max(0.0, began + _PACE_S - time.monotonic()))
            elif self._watch.is_over:
                self._end(stopping)
            else:
                self._add(b"", self._watch.position)

    def _pass_on(self, changes: list[Change]) -> None:
        upcoming, events, size = dict(self._now.position), list[bytes](), 0
        for change in changes:
            upcoming[change.partition] = max(upcoming.get(change.partition, 0), change.offset + 1)
            events.append(self._event_of(change, str(Position(upcoming))))
            size += len(events[-1])
            if size >= _PIECE_BYTES:
                self._add(b"".join(events), Position(upcoming))
                self._tell_all()
                # A burst of changes must not be dropped before a quick subscriber could take it.
                self._background.rest(_PIECE_PACE_S)
                events, size = [], 0
        self._add(b"".join(events), self._watch.position)
        self._tell_all()

    def _go_on(self) -> None:
        """Watches again from where it was cut off, and reads the missed changes from Kafka."""
        while not self._background.is_stopping:
            try:
                self._watch = self._replica.changes(self._now.position, _as_it_is)
                return None
            except (HistoryLost, BadInput):
                return self._start_over()
            except (NotReady, StoreDamaged, ClusterUnreachable):
                self._background.rest(_LOOK_EVERY_S)
        return None

    def _start_over(self) -> None:
        """Watches a rebuilt table from its beginning, and sends a reset to the subscribers of the old one."""
        while not self._background.is_stopping:
            try:
                self._watch = self._replica.changes(None, _as_it_is)
            except NotReady:
                self._background.rest(_PACE_S)
            else:
                position = self._watch.position
                self._add(reset_event(str(position)), position, building=self._now.building + 1)
                self._tell_all()
                return

    def _add(self, events: bytes, position: Position, *, building: int | None = None) -> None:
        with self._lock:
            number, _, old_building = self._now
            if not events:
                # Nothing came: a new subscriber begins with the newer position.
                self._now = self._now._replace(position=position)
                return
            self._now = StreamPlace(number + 1, position, old_building if building is None else building)
            self._pieces.append(_Piece(events, self._now))
            self._bytes += len(events)
            while self._bytes > self._most_bytes and len(self._pieces) > 1:
                self._bytes -= len(self._pieces.popleft().events)

    def _end(self, why: Callable[[], Refused]) -> None:
        self._background.ask_to_stop()
        self.ended = self.ended or why
        self._tell_all()

    def _tell_all(self) -> None:
        # The event loop may be closed by now, together with all subscribers.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for tell in self.subscribers:
            tell()


def _as_it_is(change: Change) -> Change:
    return change
