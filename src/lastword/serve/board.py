"""The board over HTTP: as it is now, what was refused, and a stream of boards."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec

from lastword.core.errors import NotReady
from lastword.serve.changes import events
from lastword.serve.changes.change_streams import Stream, Streams
from lastword.serve.http.answers import Answer, Headers, Refused, json_answer, stopping
from lastword.serve.http.backpressure import BoundedStream
from lastword.teams.board.live import LiveBoard
from lastword.teams.board.ranking import Board

_EVERY_S = 1.0


class ServedBoard:
    """Used from one event loop."""

    def __init__(self, live: LiveBoard) -> None:
        self.live = live

    @property
    def board(self) -> Board:
        """Refused while there is none."""
        try:
            return self.live.board
        except NotReady:
            # Its message may name addresses, which are not for whoever asks over HTTP.
            raise Refused("not_ready", "the board has nothing to show yet") from None

    def answer(self) -> Answer:
        return json_answer(self.board.as_json())

    def refused_answer(self) -> Answer:
        return json_answer(self.board.refused_json())


class BoardStream(Stream):
    """The whole board at once, and again whenever it has changed; at most one a second, so nobody falls behind."""

    def __init__(self, streams: Streams, board: ServedBoard, *, heartbeat_s: float) -> None:
        super().__init__(streams, several=False, heartbeat_s=heartbeat_s)
        self._board = board
        self._sent: Board | None = None
        streams.wakers.add(self._woken.set)

    @classmethod
    def begin(cls, streams: Streams, board: ServedBoard, *, heartbeat_s: float) -> BoardStream:
        """A stream that is ready to run, to be closed; Refused where it can't begin."""
        _ = board.board
        streams.admit()
        return cls(streams, board, heartbeat_s=heartbeat_s)

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
        board = self._board.board
        if not self._is_sent(board):
            self._sent = board
            await outlet.send(b"event: board\ndata: %b\n\n" % msgspec.json.encode(board.as_json()))
        return False

    async def _news(self) -> bool:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._heartbeat_s
        while loop.time() < due:
            if await self._is_woken(min(_EVERY_S, due - loop.time())) or not self._is_sent(self._board.board):
                return True
        return False

    async def _is_woken(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                return await self._woken.wait()
        except TimeoutError:
            return False

    def _is_sent(self, board: Board) -> bool:
        # When it was made, and kept, is no change of the board.
        sent = self._sent
        return sent is not None and replace(board, at=sent.at, written=sent.written) == sent
