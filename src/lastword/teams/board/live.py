"""The board as it is now, for whoever shows it: a thread that follows it, whatever happens to the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lastword.core.clock import now_ms
from lastword.core.errors import Fenced, LastwordError, NotReady, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.processes.background_loop import BackgroundLoop
from lastword.teams.board.board_session import BoardSession
from lastword.teams.board.board_topics import make_state_topic
from lastword.teams.board.group_watch import OutsideWatch
from lastword.teams.board.ranking import Board

_RETRY_S = 1.0
# The cluster may not answer: the thread then ends with the process.
_STOP_S = 5.0
# A board that was not made again for so long is not about now.
_STALE_MS = 10_000


class LiveBoard:
    """Followed from `with` on. Where it `writes`, what it counts is kept in `board_state`, unless another does that."""

    def __init__(self, connection: Connection, *, writes: bool, tell: Callable[[str], None] = lambda _: None) -> None:
        self._connection = connection
        self._may_write = writes
        self._tell = tell
        self._told = ""
        self._news = threading.Condition()
        self._board: Board | None = None
        self._failure: LastwordError | None = None
        self.is_writer = False
        self._loop = BackgroundLoop("board", self._run)

    def __enter__(self) -> LiveBoard:
        self.start()
        return self

    def start(self) -> None:
        self._loop.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._loop.stop(_STOP_S)

    @property
    def is_ready(self) -> bool:
        """Whether there is a board, and it is about now."""
        return self._board is not None and self.board.state == "ready"

    @property
    def board(self) -> Board:
        """The newest; NotReady before the first. One that is not followed any more says so."""
        board = self._board
        if board is None:
            why = f": {self._failure}" if self._failure is not None else ""
            raise NotReady(f"the board has nothing to show yet{why}")
        if now_ms() - board.at > _STALE_MS:
            return board.as_unreachable(str(self._failure) if self._failure is not None else None)
        return board

    def wait_until_ready(self, timeout_s: float) -> Board:
        """The first board; the first error that keeps it away, or NotReady when it does not come in time."""
        with self._news:
            self._news.wait_for(lambda: self._board is not None or self._failure is not None, timeout_s)
        if self._board is None and self._failure is not None:
            raise self._failure
        return self.board

    def _run(self) -> None:
        writes = self._may_write
        outside = OutsideWatch(self._connection)
        outside.start()
        while not self._loop.is_stopping:
            try:
                self._stay(outside, writes=writes)
            except Fenced:
                self._tell_once("the board is written by another process: this one goes on reading")
                writes = False
            except TakenOver as news:
                self._tell_once(str(news))
                writes = self._may_write
            except LastwordError as failure:
                # Whether it was kept nobody knows: the rows will tell. If nobody else writes, it does so again.
                self._fail(failure)
                writes = writes and self._board is None
            except Exception as surprise:
                self._fail(LastwordError(f"the board: {type(surprise).__name__}: {surprise}"))
                writes = False
            self._loop.rest(_RETRY_S if self._failure is not None else 0)
        outside.close()

    def _stay(self, outside: OutsideWatch, *, writes: bool) -> None:
        if writes:
            make_state_topic(self._connection)
        session = BoardSession(self._connection, outside, writes=writes, show=self._publish)
        self.is_writer = writes
        try:
            while not self._loop.is_stopping:
                session.turn()
                if self._may_write and not writes and session.writer_is_silent:
                    raise TakenOver("nobody has written the board for long: this process does it now")
            session.keep()
        finally:
            self.is_writer = False
            session.close()

    def _publish(self, board: Board) -> None:
        with self._news:
            self._board = board
            self._failure = None
            self._news.notify_all()

    def _fail(self, failure: LastwordError) -> None:
        with self._news:
            self._failure = failure
            self._news.notify_all()
        self._tell_once(str(failure))

    def _tell_once(self, what: str) -> None:
        if what != self._told:
            self._told = what
            self._tell(what)
