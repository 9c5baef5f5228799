"""One session of the board: it starts from the rows of `board_state`, then follows and counts the topics.

The writer writes its counts to `board_state` once a second, in one transaction with the position that they belong to.
A reader takes these rows, and notices when no writer has written for too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from lastword.core.clock import now_ms
from lastword.core.errors import LastwordError, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_to_end
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.teams.board.board_rows import BoardRows, rows_of
from lastword.teams.board.board_topics import ACTIONS, STATE, STATS
from lastword.teams.board.group_watch import GroupWatch
from lastword.teams.board.presence import Status, TeamPresence, seen_teams
from lastword.teams.board.ranking import Board, actions_of, last_refused, numbers_of, ranked, refused_counts
from lastword.teams.board.rates import Rates
from lastword.teams.board.reader_view import ReaderView
from lastword.teams.board.side_topic import SideTopic
from lastword.teams.board.source import CountedTopic
from lastword.teams.board.status_source import StatusSource

# The transactional id: the process that takes it last is the writer.
WRITER = "lastword-board"
_PATIENCE_S = 0.05
_TROUBLE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class BoardTimes:
    # How often the writer writes its counts.
    commit_every_s: float = 1.0
    publish_every_s: float = 0.3
    # A writer that has had something to write for this long, and has not written, counts as dead.
    silence_s: float = 15.0


class BoardSession:
    """Used from one thread; closed by its maker."""

    def __init__(
        self,
        connection: Connection,
        groups: GroupWatch,
        status_source: StatusSource,
        *,
        writes: bool,
        publish: Callable[[Board], None],
        times: BoardTimes,
    ) -> None:
        self._groups = groups
        self._publish = publish
        self._times = times
        self._status_source = status_source
        # First the id: after that no other process writes, and no transaction is open.
        self._transactions = Transactions(connection, WRITER) if writes else None
        try:
            rows, end = _read_state(connection)
        except BaseException:
            self._close_transactions()
            raise
        self._view = ReaderView(rows, agrees=not writes)
        self._sources = [CountedTopic(connection, topic) for topic in (ACTIONS, STATS)]
        self._state = SideTopic(connection, STATE, end)
        self._status: Status | None = None
        self._actions, self._processed = Rates(absent=0), Rates()
        self._was_published = False
        self._publish_at = self._commit_at = 0.0
        self._writer_seen_at = time.monotonic()

    def turn(self) -> None:
        """One round. TakenOver when the session must start again; Fenced when another process writes now."""
        self._follow_rows()
        came, trouble = False, None
        for source in self._sources:
            try:
                came = source.poll(self._view, 0 if came else _PATIENCE_S) or came
            except LastwordError as failure:
                # The other topics are still followed. This one is tried again: its count is kept.
                trouble = trouble or failure
        for value in self._status_source.new_values():
            status = Status.read(value)
            self._status = None if status is None else status.after(self._status)
        now = time.monotonic()
        if now >= self._publish_at and (trouble is not None or self._is_current):
            self._make_board(trouble)
            self._publish_at = now + self._times.publish_every_s
        if now >= self._commit_at:
            self.write_rows()
            self._commit_at = time.monotonic() + self._times.commit_every_s
        if trouble is not None:
            if not self._was_published:
                raise trouble
            time.sleep(_TROUBLE_S)

    def write_rows(self) -> None:
        """Writes the counts that are not in `board_state` yet, if this process is the writer."""
        tally = self._view.tally
        if self._transactions is None or not tally.changed:
            return
        rows = rows_of(tally, tally.changed)
        *first, last = [OutgoingRecord(STATE, value, key.encode(), partition=0) for key, value in rows.items()]
        self._transactions.write(first, last)
        tally.changed.clear()

    @property
    def writer_is_silent(self) -> bool:
        """Whether there has been something to write for long, and no process has written."""
        if not self._view.is_ahead:
            self._writer_seen_at = time.monotonic()
        return time.monotonic() - self._writer_seen_at > self._times.silence_s

    def close(self) -> None:
        for source in self._sources:
            source.close()
        self._state.close()
        self._status_source.close()
        self._close_transactions()

    def _close_transactions(self) -> None:
        if self._transactions is not None:
            self._transactions.close()

    @property
    def _is_current(self) -> bool:
        # The first board has every record so far; a later one at least the records of the board before it.
        return self._was_published or (self._groups.has_looked and all(source.is_at_end for source in self._sources))

    def _follow_rows(self) -> None:
        records = self._state.poll()
        written = self._view.rows.written
        if records:
            self._view.agree(records)
        if self._view.rows.written != written:
            self._writer_seen_at = time.monotonic()
        if self._state.is_another:
            raise TakenOver(f"the topic {STATE} was deleted and made again: counting starts again")

    def _make_board(self, trouble: LastwordError | None) -> None:
        """Gives badges to the teams that are seen, and publishes the board."""
        tally, now = self._view.tally, now_ms()
        registered = sorted(self._view.rows.registered)
        seen: dict[str, TeamPresence] = {
            team: each
            for team, each in seen_teams(self._status, self._groups.groups, tally.earned, registered, now).items()
            if tally.admit(team)
        }
        self._groups.known = frozenset(seen)
        for team, each in seen.items():
            for badge in each.badges:
                tally.award(team, badge, now)
        self._actions.note(time.monotonic(), actions_of(tally))
        self._processed.note(time.monotonic(), {team: numbers.processed for team, numbers in numbers_of(tally).items()})
        board = Board(
            at=now,
            state="ready",
            why=None,
            written=self._view.rows.written,
            missed=sum(count.missed for count in tally.counts.values()),
            teams=ranked(tally, seen, self._actions, self._processed),
            refused=refused_counts(tally),
            last_refused=last_refused(tally),
        )
        if trouble is None:
            self._was_published = True
            self._publish(board)
        elif self._was_published:
            self._publish(board.as_unreachable(str(trouble)))


def _read_state(connection: Connection) -> tuple[BoardRows, int | None]:
    """The rows of `board_state`, and the offset after them; None if the topic is missing."""
    rows = BoardRows()
    if STATE not in connection.reach().topics:
        return rows, None
    end = 0
    for record in read_to_end(connection, STATE, 0):
        rows.take(record)
        end = record.offset + 1
    return rows, end
