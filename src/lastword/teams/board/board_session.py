"""One stay at the board: from the rows of `board_state` on, everything is followed and counted, until it ends.

The writer keeps what it has counted once a second, in one transaction with the position that it belongs to. A reader
takes what the writer keeps, and says when the writer has been silent for too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lastword.core.clock import now_ms
from lastword.core.errors import LastwordError, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_to_end
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.teams.board.board_rows import KeptBoard, rows_of
from lastword.teams.board.board_topics import ACTIONS, PIPELINE, STATE, STATS, STATUS
from lastword.teams.board.group_watch import OutsideWatch
from lastword.teams.board.presence import Status, TeamPresence, seen_teams
from lastword.teams.board.ranking import Board, actions_of, last_refused, numbers_of, ranked, refused_counts
from lastword.teams.board.rates import Rates
from lastword.teams.board.reader_view import Shown
from lastword.teams.board.side_topic import SideTopic
from lastword.teams.board.source import CountedTopic

# Whoever takes it last writes.
WRITER = "lastword-board"
_COMMIT_EVERY_S = 1.0
_SHOW_EVERY_S = 0.3
_PATIENCE_S = 0.05
_TROUBLE_S = 0.5
# A writer that has something to write and does not for so long is taken for dead.
_SILENCE_S = 15.0


class BoardSession:
    """Used from one thread; closed by its maker."""

    def __init__(
        self, connection: Connection, outside: OutsideWatch, *, writes: bool, show: Callable[[Board], None]
    ) -> None:
        self._outside = outside
        self._show = show
        # First the id: after that nobody else writes, and nothing is open.
        self._transactions = Transactions(connection, WRITER) if writes else None
        try:
            kept, end = _read_state(connection)
        except BaseException:
            self._close_transactions()
            raise
        self._shown = Shown(kept, agrees=not writes)
        self._sources = [CountedTopic(connection, topic) for topic in (ACTIONS, STATS)]
        self._state = SideTopic(connection, STATE, end)
        self._status_topic = SideTopic(connection, STATUS)
        self._status: Status | None = None
        self._actions, self._processed = Rates(absent=0), Rates()
        self._was_shown = False
        self._show_at = self._commit_at = 0.0
        self._heard_of_writer_at = time.monotonic()

    def turn(self) -> None:
        """A moment of it. TakenOver when it must begin anew; Fenced when another writes now."""
        self._follow_rows()
        came, trouble = False, None
        for source in self._sources:
            try:
                came = source.hear(self._shown, 0 if came else _PATIENCE_S) or came
            except LastwordError as failure:
                # The others go on, and it is tried again: its count stands.
                trouble = trouble or failure
        for record in self._status_topic.hear():
            if record.key == PIPELINE.encode():
                status = Status.read(record.value)
                self._status = None if status is None else status.after(self._status)
        now = time.monotonic()
        if now >= self._show_at and (trouble is not None or self._is_current):
            self._look_around(trouble)
            self._show_at = now + _SHOW_EVERY_S
        if now >= self._commit_at:
            self.keep()
            self._commit_at = time.monotonic() + _COMMIT_EVERY_S
        if trouble is not None:
            if not self._was_shown:
                raise trouble
            time.sleep(_TROUBLE_S)

    def keep(self) -> None:
        """Writes what was counted and is not in `board_state` yet, if that is ours to do."""
        tally = self._shown.tally
        if self._transactions is None or not tally.changed:
            return
        rows = rows_of(tally, tally.changed)
        *first, last = [OutgoingRecord(STATE, value, key.encode(), partition=0) for key, value in rows.items()]
        self._transactions.write(first, last)
        tally.changed.clear()

    @property
    def writer_is_silent(self) -> bool:
        """Whether there has been something to write for long, and nobody has written."""
        if not self._shown.is_ahead:
            self._heard_of_writer_at = time.monotonic()
        return time.monotonic() - self._heard_of_writer_at > _SILENCE_S

    def close(self) -> None:
        for source in self._sources:
            source.close()
        for side in (self._state, self._status_topic):
            side.close()
        self._close_transactions()

    def _close_transactions(self) -> None:
        if self._transactions is not None:
            self._transactions.close()

    @property
    def _is_current(self) -> bool:
        # The first board has everything; later ones have at least what the one before had.
        return self._was_shown or (self._outside.has_looked and all(source.is_at_end for source in self._sources))

    def _follow_rows(self) -> None:
        rows = self._state.hear()
        written = self._shown.kept.written
        if rows:
            self._shown.agree(rows)
        if self._shown.kept.written != written:
            self._heard_of_writer_at = time.monotonic()
        if self._state.is_another:
            raise TakenOver(f"the topic {STATE} was deleted and made again: counting begins anew")

    def _look_around(self, trouble: LastwordError | None) -> None:
        """Gives badges for what is seen, and shows the board."""
        tally, now = self._shown.tally, now_ms()
        registered = sorted(self._shown.kept.registered)
        seen: dict[str, TeamPresence] = {
            team: each
            for team, each in seen_teams(self._status, self._outside.groups, tally.earned, registered, now).items()
            if tally.admit(team)
        }
        self._outside.known = frozenset(seen)
        for team, each in seen.items():
            for badge in each.badges:
                tally.award(team, badge, now)
        self._actions.note(time.monotonic(), actions_of(tally))
        self._processed.note(time.monotonic(), {team: numbers.processed for team, numbers in numbers_of(tally).items()})
        board = Board(
            at=now,
            state="ready",
            why=None,
            written=self._shown.kept.written,
            missed=sum(count.missed for count in tally.counts.values()),
            teams=ranked(tally, seen, self._actions, self._processed),
            refused=refused_counts(tally),
            last_refused=last_refused(tally),
        )
        if trouble is None:
            self._was_shown = True
            self._show(board)
        elif self._was_shown:
            self._show(board.as_unreachable(str(trouble)))


def _read_state(connection: Connection) -> tuple[KeptBoard, int | None]:
    """What `board_state` says, and the offset after that; None where there is no such topic."""
    kept = KeptBoard()
    if STATE not in connection.reach().topics:
        return kept, None
    end = 0
    for record in read_to_end(connection, STATE, 0):
        kept.take(record)
        end = record.offset + 1
    return kept, end
