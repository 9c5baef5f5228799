"""The board as it is now: a thread follows it, also through outages of the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from lastword.core.clock import now_ms
from lastword.core.errors import Fenced, LastwordError, NotReady, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.processes.background_loop import BackgroundLoop
from lastword.teams.board.board_session import BoardSession, BoardTimes
from lastword.teams.board.board_topics import make_state_topic
from lastword.teams.board.group_watch import GroupWatch
from lastword.teams.board.ranking import Board
from lastword.teams.board.status_source import StatusSource, StatusTopic

_RETRY_S = 1.0
# The cluster may not answer: the thread then ends with the process.
_STOP_S = 5.0
# A board that is older than this is not current any more.
_STALE_MS = 10_000


class LiveBoard:
    """The board, followed from `start` to `close`, or inside `with`.

    If `writes`, the counts are written to `board_state`, unless another process does that. The status of the pipeline
    comes from its topic, or from what `status_source` makes for each session. `report` gets lines for the user.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        writes: bool,
        report: Callable[[str], None] = lambda _: None,
        status_source: Callable[[], StatusSource] | None = None,
        times: BoardTimes | None = None,
    ) -> None:
        self._connection = connection
        self._may_write = writes
        self._report = report
        self._reported = ""
        self._status_source = status_source or partial(StatusTopic, connection)
        self._times = times or BoardTimes()
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
        """Whether there is a board, and it is current."""
        return self._board is not None and self.board.state == "ready"

    @property
    def board(self) -> Board:
        """The newest board; NotReady before the first. Its state says whether it is still followed."""
        board = self._board
        if board is None:
            why = f": {self._failure}" if self._failure is not None else ""
            raise NotReady(f"the board has nothing to show yet{why}")
        if now_ms() - board.at > _STALE_MS:
            return board.as_unreachable(str(self._failure) if self._failure is not None else None)
        return board

    def wait_until_ready(self, timeout_s: float) -> Board:
        """The first board; the first error that prevents it, or NotReady when it does not come in time."""
        with self._news:
            self._news.wait_for(lambda: self._board is not None or self._failure is not None, timeout_s)
        if self._board is None and self._failure is not None:
            raise self._failure
        return self.board

    def _run(self) -> None:
        writes = self._may_write
        groups = GroupWatch(self._connection)
        groups.start()
        while not self._loop.is_stopping:
            try:
                self._run_session(groups, writes=writes)
            except Fenced:
                self._report_once("another process writes the board: this process only reads from now on")
                writes = False
            except TakenOver as news:
                self._report_once(str(news))
                writes = self._may_write
            except LastwordError as failure:
                # The last write may have succeeded: the rows show it. If no other process writes, this one does again.
                self._fail(failure)
                writes = writes and self._board is None
            except Exception as surprise:
                self._fail(LastwordError(f"the board: {type(surprise).__name__}: {surprise}"))
                writes = False
            self._loop.rest(_RETRY_S if self._failure is not None else 0)
        groups.close()

    def _run_session(self, groups: GroupWatch, *, writes: bool) -> None:
        if writes:
            make_state_topic(self._connection)
        session = BoardSession(
            self._connection,
            groups,
            self._status_source(),
            writes=writes,
            publish=self._publish,
            times=self._times,
        )
        self.is_writer = writes
        try:
            while not self._loop.is_stopping:
                session.turn()
                if self._may_write and not writes and session.writer_is_silent:
                    raise TakenOver("no process has written the board for long: this process does it now")
            session.write_rows()
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
        self._report_once(str(failure))

    def _report_once(self, line: str) -> None:
        if line != self._reported:
            self._reported = line
            self._report(line)
