"""The subscription of a change stream to one table: first the missed changes from Kafka, then the broadcast."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from contextlib import closing
from typing import NamedTuple

from lastword.core.errors import BadInput, ClusterUnreachable, HistoryLost, NotReady, StoreDamaged
from lastword.core.position import Position
from lastword.replica.replay import SweptHere
from lastword.serve.changes.broadcast import Broadcast
from lastword.serve.changes.events import change_event, reset_event
from lastword.serve.http.answers import Refused, stopping
from lastword.serve.tables.position_wait import PositionWaits
from lastword.serve.tables.served_table import ServedTable


class _Leg(NamedTuple):
    """A piece of the missed changes, and the position after it."""

    events: bytes
    position: Position


class Subscription:
    """One client's place in the changes of a table. `take` gives the next events."""

    def __init__(self, table: ServedTable, broadcast: Broadcast, replays: Executor, *, leg_bytes: int) -> None:
        self.table = table
        self.broadcast = broadcast
        self._replays = replays
        # Missed changes are read in pieces, so that a slow client keeps no consumer open and little in memory.
        self._leg_bytes = leg_bytes
        # Where the broadcast continues after the missed changes.
        self._place = broadcast.now
        # How far the missed changes are read; None once all of them are.
        self._at: Position | None = None
        self._leg: _Leg | None = None
        self._starts_over = False
        self._is_wanted = True

    async def begin(self, begin: Position | None, waiting: PositionWaits) -> None:
        """Begins at a position; Refused if the changes since then can't be read any more."""
        if begin is None:
            return
        try:
            if not self._place.position.covers(begin):
                # Another instance was ahead of this one, or the position belongs to no existing log.
                await self._read(begin, begin)
                await waiting.until(self.table, begin, lambda: self.broadcast.now.position.covers(begin))
                self._place = self.broadcast.now
            self._leg = await self._read(begin, self._place.position)
            self._at = begin
        except SweptHere:
            # A sweep removed rows at this very position, and no event says so: the client must read the rows again.
            self._starts_over = True

    def abandon(self) -> None:
        """Stops reading missed changes: the client has left."""
        self._is_wanted = False

    @property
    def position(self) -> str:
        """Where the client can resume after the events so far."""
        return str(self._place.position if self._at is None else self._at)

    async def take(self) -> bytes | None:
        """The next events; None while there are none. Refused or FellBehind when the subscription can't continue."""
        if self._starts_over:
            self._starts_over = False
            return reset_event(str(self._place.position))
        if self._at is not None:
            return await self._missed(self._at)
        found = self.broadcast.after(self._place)
        if found is None:
            if self.broadcast.ended is not None:
                raise self.broadcast.ended()
            now = self.broadcast.now
            if now.number == self._place.number:
                # The records since then changed no row.
                self._place = now
            return None
        events, self._place = found
        return events

    async def _missed(self, at: Position) -> bytes:
        leg, self._leg = self._leg, None
        if leg is None:
            leg = await self._read(at, self._place.position, goes_on=True)
        self._at = leg.position
        if not leg.position.covers(self._place.position):
            return leg.events
        if self.broadcast.holds(self._place):
            self._at = None
            return leg.events
        # Meanwhile the broadcast dropped the next events: read further from Kafka.
        place, self._place = self._place, self.broadcast.now
        if place.building == self._place.building:
            return leg.events
        self._at = None
        return leg.events + reset_event(str(self._place.position))

    async def _read(self, begin: Position, end: Position, *, goes_on: bool = False) -> _Leg:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._replays, self._read_leg, begin, end, goes_on)
        except SweptHere:
            raise
        except (HistoryLost, BadInput) as lost:
            hint = f"read the rows again at /tables/{self.table.name}/rows, and continue from their position"
            raise Refused("position_gone", str(lost), hint) from None
        except ClusterUnreachable:
            raise Refused("cluster_unreachable", "no cluster answers, so the missed changes can't be read") from None
        except NotReady:
            raise self.table.not_ready() from None
        except StoreDamaged:
            raise self.table.damaged() from None
        except RuntimeError:
            # The server stops, and its threads take no more work.
            raise stopping() from None

    def _read_leg(self, begin: Position, end: Position, goes_on: bool) -> _Leg:
        upcoming, events, size = dict(begin), list[bytes](), 0
        missed = self.table.replica.changes_between(begin, end, goes_on=goes_on, check_wanted=self._check_wanted)
        with closing(missed) as changes:
            for change in changes:
                upcoming[change.partition] = max(upcoming.get(change.partition, 0), change.offset + 1)
                events.append(
                    change_event(change, str(Position(upcoming)), self.table.key_codec, self.table.value_codec)
                )
                size += len(events[-1])
                if size >= self._leg_bytes:
                    return _Leg(b"".join(events), Position(upcoming))
        return _Leg(b"".join(events), Position({p: max(offset, begin.get(p, 0)) for p, offset in end.items()}))

    def _check_wanted(self) -> None:
        if not self._is_wanted:
            raise NotReady("the client has left")
