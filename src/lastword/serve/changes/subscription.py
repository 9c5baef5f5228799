"""One table's part of a change stream: what its client missed, read from Kafka in legs, then the broadcast."""

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

# So that a slow client keeps no consumer open, and not much in memory.
_LEG_BYTES = 1024 * 1024


class _Leg(NamedTuple):
    """Some of what was missed, and the position that it leads to."""

    events: bytes
    position: Position


class Listener:
    def __init__(self, table: ServedTable, broadcast: Broadcast, replays: Executor) -> None:
        self.table = table
        self.broadcast = broadcast
        self._replays = replays
        # Where the broadcast goes on after what was missed.
        self._place = broadcast.now
        # How far what was missed is read: None when all of it is.
        self._at: Position | None = None
        self._leg: _Leg | None = None
        self._starts_over = False
        self._is_wanted = True

    async def begin(self, begin: Position | None, waiting: PositionWaits) -> None:
        """Makes sure that all since a position can be given; Refused where it can't."""
        if begin is None:
            return
        try:
            if not self._place.position.covers(begin):
                # Another instance was ahead of this one, or the position is of no log that there is.
                await self._read(begin, begin)
                await waiting.until(self.table, begin, lambda: self.broadcast.now.position.covers(begin))
                self._place = self.broadcast.now
            self._leg = await self._read(begin, self._place.position)
            self._at = begin
        except SweptHere:
            # Whoever read the rows since then has all of it, but the position does not say so.
            self._starts_over = True

    def abandon(self) -> None:
        """Ends what is still being read for it."""
        self._is_wanted = False

    @property
    def position(self) -> str:
        """Where its client goes on, when it has taken all that was given."""
        return str(self._place.position if self._at is None else self._at)

    async def take(self) -> bytes | None:
        """The next events, None while there are none; Refused or FellBehind when it can't go on."""
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
                # What was read since changed no row.
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
        # So much was missed that the broadcast has moved on: there is more to read.
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
            hint = f"read the rows again at /tables/{self.table.name}/rows, and go on from their position"
            raise Refused("position_gone", str(lost), hint) from None
        except ClusterUnreachable:
            raise Refused("cluster_unreachable", "no cluster answers, so what came since can't be read") from None
        except NotReady:
            raise self.table.not_ready() from None
        except StoreDamaged:
            raise self.table.damaged() from None
        except RuntimeError:
            # The threads take no more work.
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
                if size >= _LEG_BYTES:
                    return _Leg(b"".join(events), Position(upcoming))
        return _Leg(b"".join(events), Position({p: max(offset, begin.get(p, 0)) for p, offset in end.items()}))

    def _check_wanted(self) -> None:
        if not self._is_wanted:
            raise NotReady("nobody waits for it any more")
