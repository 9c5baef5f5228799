"""The board as a guest of the HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lastword.core.errors import ClusterUnreachable, NotReady
from lastword.kafka.client.connection import Connection
from lastword.serve.changes.change_streams import Streams
from lastword.serve.changes.snapshot_stream import SnapshotSource, SnapshotStream
from lastword.serve.guest import Guest, GuestRoute
from lastword.serve.http.answers import Answer, Refused, json_answer
from lastword.serve.http.backpressure import Streamed
from lastword.serve.tables.served_table import ServedTable
from lastword.teams.board.board_topics import STATUS, refuse_missing
from lastword.teams.board.live import LiveBoard
from lastword.teams.board.ranking import Board
from lastword.teams.board.status_source import StatusSource
from lastword.teams.serving.board_paths import board_paths, board_schemas
from lastword.teams.serving.served_status import ServedStatus

_BOARD, _REFUSED, _CHANGES = "/board", "/board/refused", "/board/changes"
_KINDS = {_BOARD: "board", _REFUSED: "board refused", _CHANGES: "board changes"}


class BoardGuest(Guest):
    """The board, which is counted and written while the server runs; `report` gets what happens to it."""

    name = "board"

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._live: LiveBoard | None = None
        self.routes = _routes({_BOARD: self._answer, _REFUSED: self._refused_answer, _CHANGES: self._stream})
        self.schemas = board_schemas()

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

    def _answer(self, _: Streams) -> Answer:
        return json_answer(self.board().as_json())

    def _refused_answer(self, _: Streams) -> Answer:
        return json_answer(self.board().refused_json())

    def _stream(self, streams: Streams) -> Streamed:
        source = SnapshotSource(event="board", newest=self.board, as_json=Board.as_json, is_same=_is_same)
        return SnapshotStream.begin(streams, source)


class AbsentBoard(Guest):
    """A server without the board, whose routes say how to get it."""

    name = "board"
    is_present = False

    def __init__(self) -> None:
        self.routes = _routes(dict.fromkeys(_KINDS, _refuse))


def _status_source(tables: Sequence[ServedTable]) -> Callable[[], StatusSource] | None:
    """The served table of the pipeline's status, if there is one: then the board need not read its topic again."""
    replica = next((table.replica for table in tables if table.replica.topic == STATUS), None)
    return None if replica is None else partial(ServedStatus, replica)


def _refuse(_: Streams) -> Answer:
    raise Refused("no_such_route", "the board is not served here", "start the server with --board")


def _is_same(board: Board, other: Board) -> bool:
    """Whether only the time of the board, or of its rows in board_state, differs."""
    return replace(board, at=other.at, written=other.written) == other


def _routes(answers: Mapping[str, Callable[[Streams], Answer | Streamed]]) -> list[GuestRoute]:
    paths = board_paths()
    return [GuestRoute(path, _KINDS[path], answer, paths[path]) for path, answer in answers.items()]
