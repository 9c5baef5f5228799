"""Change streams: a bounded number of them, and one broadcast for each table that a client listens to.

A client that resumes gets what it missed from `subscription`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lastword.core.errors import FellBehind, LastwordError, NotReady
from lastword.core.position import Position
from lastword.serve.changes import events
from lastword.serve.changes.broadcast import Broadcast, failed
from lastword.serve.changes.subscription import Subscription
from lastword.serve.http.answers import Headers, Refused, stopping
from lastword.serve.http.backpressure import BoundedStream, Gone, Stalled
from lastword.serve.http.limits import Limits
from lastword.serve.tables.position_wait import PositionWaits
from lastword.serve.tables.served_table import ServedTable

# Threads that read missed changes.
_REPLAYS = 4

_log = logging.getLogger(__name__)


class Streams:
    """Used from one event loop."""

    def __init__(self, limits: Limits, waiting: PositionWaits) -> None:
        self._limits = limits
        self._waiting = waiting
        self._replays = ThreadPoolExecutor(_REPLAYS, thread_name_prefix="missed changes")
        self._broadcasts: dict[str, Broadcast] = {}
        self._subscriptions: Counter[str] = Counter()
        self.heartbeat_s = limits.heartbeat_s
        self.is_stopping = False
        # Heartbeats of streams that no broadcast wakes.
        self.wakers: set[Callable[[], None]] = set()
        self.open = 0
        # Streams that the server ended, by the reason.
        self.cut: Counter[str] = Counter()

    async def begin(self, tables: Sequence[ServedTable], begins: Mapping[str, Position], *, several: bool) -> Stream:
        """A stream to run and to close; Refused when it can't begin. Without a position it begins now."""
        self.admit()
        stream = Stream(self, several=several)
        try:
            for table in tables:
                leg_bytes = self._limits.missed_bytes
                subscription = Subscription(table, self._joined(table), self._replays, leg_bytes=leg_bytes)
                stream.subscriptions.append(subscription)
                await subscription.begin(begins.get(table.name), self._waiting)
        except BaseException:
            stream.close()
            raise
        return stream

    def admit(self) -> None:
        """Takes the place of one stream, which its `close` gives back; Refused when all are taken."""
        if self.is_stopping:
            raise stopping()
        if self.open >= self._limits.streams:
            raise Refused("too_many_streams", "too many change streams are open")
        self.open += 1

    def stop(self) -> None:
        """Begins no more streams, and ends each open one once its client has taken the events that are there."""
        self.is_stopping = True
        for wake in self.wakers:
            wake()
        for broadcast in self._broadcasts.values():
            broadcast.close()
        self._replays.shutdown(wait=False)

    def leave(self, stream: Stream) -> None:
        self.open -= 1
        for subscription in stream.subscriptions:
            name = subscription.table.name
            self._subscriptions[name] -= 1
            if not self._subscriptions[name]:
                self._broadcasts.pop(name).close()

    def _joined(self, table: ServedTable) -> Broadcast:
        found = self._broadcasts.get(table.name)
        if found is None or found.ended is not None:
            try:
                event_of = events.event_maker(table.key_codec, table.value_codec)
                found = Broadcast(table.replica, event_of, most_bytes=self._limits.stream_bytes)
            except NotReady:
                raise table.not_ready() from None
            except LastwordError:
                raise failed() from None
            self._broadcasts[table.name] = found
        self._subscriptions[table.name] += 1
        return found


class Stream:
    """The stream to one client, over one table or several."""

    def __init__(self, streams: Streams, *, several: bool) -> None:
        self.subscriptions: list[Subscription] = []
        self._streams = streams
        self._several = several
        self._heartbeat_s = streams.heartbeat_s
        self._is_open = True
        self._woken = asyncio.Event()

    @property
    def headers(self) -> Headers:
        return [*events.HEADERS, ("x-lastword-position", self._position())]

    async def run(self, outlet: BoundedStream) -> None:
        """Returns when the client has left, or was cut off."""
        gone = asyncio.ensure_future(outlet.until_gone())
        gone.add_done_callback(lambda _: self._woken.set())
        for subscription in self.subscriptions:
            subscription.broadcast.subscribers.add(self._woken.set)
        try:
            await outlet.send(events.RETRY + self._opening())
            while not gone.done():
                if await self._send_what_is_there(outlet):
                    continue
                if not await self._news():
                    await outlet.send(self._heartbeat())
        except FellBehind:
            await self._cut(outlet, Refused("fell_behind", "more changes came than are kept for a slow reader"))
        except Refused as refused:
            await self._cut(outlet, refused)
        except Stalled:
            self._streams.cut["stalled"] += 1
            _log.warning("a reader of changes read nothing for too long and was cut off")
        except Gone:
            pass
        finally:
            gone.cancel()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            for subscription in self.subscriptions:
                subscription.abandon()
                subscription.broadcast.subscribers.discard(self._woken.set)
            self._streams.leave(self)

    def _opening(self) -> bytes:
        return events.at_event(self._position())

    def _heartbeat(self) -> bytes:
        return events.heartbeat(self._position())

    async def _send_what_is_there(self, outlet: BoundedStream) -> bool:
        self._woken.clear()
        sent = False
        for subscription in self.subscriptions:
            new_events = await subscription.take()
            if new_events:
                await outlet.send(self._of_all(subscription, new_events) if self._several else new_events)
            sent = sent or new_events is not None
        return sent

    async def _news(self) -> bool:
        """Whether an event came before the next heartbeat was due."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._heartbeat_s
        beat = loop.call_at(due, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            beat.cancel()
        return loop.time() < due

    def _of_all(self, subscription: Subscription, new_events: bytes) -> bytes:
        positions = {each.table.name: each.position for each in self.subscriptions}
        return events.of_table(new_events, subscription.table.name, positions)

    async def _cut(self, outlet: BoundedStream, why: Refused) -> None:
        self._streams.cut[why.code] += 1
        with suppress(Gone, Stalled):
            await outlet.send(events.cut_event(why))

    def _position(self) -> str:
        positions = {each.table.name: each.position for each in self.subscriptions}
        return events.joined(positions) if self._several else self.subscriptions[0].position
