"""The board as a guest of the HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lastword.core.errors import ClusterUnreachable, NotReady
from lastword.kafka.client.connection import Connection
from lastword.serve.changes.snapshot_stream import SnapshotSource, SnapshotStream
from lastword.serve.guest import Guest, Host
from lastword.serve.http.answers import Answer, Refused, json_answer
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.queries import NoQuery
from lastword.serve.http.requests import Request
from lastword.serve.http.routes import Handler, Route
from lastword.serve.tables.served_table import ServedTable
from lastword.teams.board.board_shapes import BoardAnswer, RefusedAnswer
from lastword.teams.board.board_topics import STATUS, refuse_missing
from lastword.teams.board.live import LiveBoard
from lastword.teams.board.ranking import Board
from lastword.teams.board.status_source import StatusSource
from lastword.teams.serving.board_paths import EXAMPLES, STREAM_CONTENT
from lastword.teams.serving.served_status import ServedStatus

_HandlerOf = Callable[[Host], Handler]


class BoardGuest(Guest):
    """The board, which is counted and written while the server runs; `report` gets what happens to it."""

    name = "board"
    examples = EXAMPLES

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._live: LiveBoard | None = None
        self.routes = _routes(lambda _: self._answer, lambda _: self._refused_answer, self._stream)

    @property
    def live(self) -> LiveBoard:
        if self._live is None:
            raise NotReady("the board is not started yet")
        return self._live

    def check(self, connection: Connection) -> None:
        # A cluster that does not answer is waited for.
        with suppress(ClusterUnreachable):
            refuse_missing(connection)

    def start(self, connection: Connection, tables: Sequence[ServedTable]) -> None:
        self._live = LiveBoard(connection, writes=True, report=self._report, status_source=_status_source(tables))
        self._live.start()

    def close(self) -> None:
        self.live.close()

    def why_not_ready(self) -> str | None:
        return None if self.live.is_ready else "the board is not ready"

    def board(self) -> Board:
        """The newest board; Refused while there is none."""
        try:
            return self.live.board
        except NotReady:
            # The message of the error may name addresses, which clients of HTTP must not see.
            raise Refused("not_ready", "the board has nothing to show yet") from None

    async def _answer(self, _request: Request, _query: NoQuery) -> Answer:
        return json_answer(self.board().answer())

    async def _refused_answer(self, _request: Request, _query: NoQuery) -> Answer:
        return json_answer(self.board().refused_answer())

    def _stream(self, host: Host) -> Handler:
        source = SnapshotSource(event="board", newest=self.board, answer=Board.answer, is_same=_is_same)

        async def begin(_request: Request, _query: NoQuery) -> Streamed:
            return SnapshotStream.begin(host.streams, source)

        return begin


class AbsentBoard(Guest):
    """A server without the board, whose routes say how to get it."""

    name = "board"
    is_present = False

    def __init__(self) -> None:
        self.routes = _routes(*[lambda _: _refuse] * 3)


def _status_source(tables: Sequence[ServedTable]) -> Callable[[], StatusSource] | None:
    """The served table of the pipeline's status, if there is one: then the board need not read its topic again."""
    replica = next((table.replica for table in tables if table.replica.topic == STATUS), None)
    return None if replica is None else partial(ServedStatus, replica)


async def _refuse(_request: Request, _query: NoQuery) -> Answer:
    raise Refused("no_such_route", "the board is not served here", "start the server with --board")


def _is_same(board: Board, other: Board) -> bool:
    """Whether only the time of the board, or of its rows in board_state, differs."""
    return replace(board, at=other.at, written=other.written) == other


def _routes(board: _HandlerOf, refused: _HandlerOf, changes: _HandlerOf) -> list[Route[Host]]:
    codes = ("not_ready",)
    return [
        Route("board", "GET", "/board", board, "The teams, in order.", BoardAnswer, codes=codes),
        Route(
            "board refused",
            "GET",
            "/board/refused",
            refused,
            "The refused records: counted by team and reason, and the last of them.",
            RefusedAnswer,
            codes=codes,
        ),
        Route(
            "board changes",
            "GET",
            "/board/changes",
            changes,
            "The board whenever it has changed, as server-sent events.",
            STREAM_CONTENT,
            codes=(*codes, "too_many_streams", "stopping"),
        ),
    ]
