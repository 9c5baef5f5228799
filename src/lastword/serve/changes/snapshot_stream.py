"""A stream of whole snapshots: the newest one first, then each that differs, at most one a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from lastword.serve.changes import events
from lastword.serve.changes.change_streams import Stream, Streams
from lastword.serve.http.answers import Headers, stopping
from lastword.serve.http.backpressure import BoundedStream

_EVERY_S = 1.0

_Snapshot = TypeVar("_Snapshot")


@dataclass(frozen=True, kw_only=True)
class SnapshotSource(Generic[_Snapshot]):
    """The snapshots of a stream: where they come from, and how they are sent."""

    event: str
    # Raises Refused while there is no snapshot.
    newest: Callable[[], _Snapshot]
    # The content of the event.
    answer: Callable[[_Snapshot], Struct]
    # Whether two snapshots show the same: then the second is not sent.
    is_same: Callable[[_Snapshot, _Snapshot], bool]


class SnapshotStream(Stream, Generic[_Snapshot]):
    """Sends only the newest snapshot, so that no client falls behind."""

    def __init__(self, streams: Streams, source: SnapshotSource[_Snapshot]) -> None:
        super().__init__(streams, several=False)
        self._source = source
        self._sent: _Snapshot | None = None
        streams.wakers.add(self._woken.set)

    @classmethod
    def begin(cls, streams: Streams, source: SnapshotSource[_Snapshot]) -> SnapshotStream[_Snapshot]:
        """A stream to run and to close; Refused when it can't begin."""
        source.newest()
        streams.admit()
        return cls(streams, source)

    @property
    def headers(self) -> Headers:
        return events.HEADERS

    def close(self) -> None:
        self._streams.wakers.discard(self._woken.set)
        super().close()

    def _opening(self) -> bytes:
        return b""

    def _heartbeat(self) -> bytes:
        return b": heartbeat\n\n"

    async def _send_what_is_there(self, outlet: BoundedStream) -> bool:
        self._woken.clear()
        if self._streams.is_stopping:
            raise stopping()
        snapshot = self._source.newest()
        if not self._is_sent(snapshot):
            self._sent = snapshot
            body = msgspec.json.encode(self._source.answer(snapshot))
            await outlet.send(b"event: %b\ndata: %b\n\n" % (self._source.event.encode(), body))
        return False

    async def _news(self) -> bool:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._heartbeat_s
        while loop.time() < due:
            if await self._is_woken(min(_EVERY_S, due - loop.time())) or not self._is_sent(self._source.newest()):
                return True
        return False

    async def _is_woken(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                return await self._woken.wait()
        except TimeoutError:
            return False

    def _is_sent(self, snapshot: _Snapshot) -> bool:
        return self._sent is not None and self._source.is_same(snapshot, self._sent)
