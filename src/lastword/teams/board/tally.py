"""The fold of both topics: exact counts for each source partition, the newest numbers of each team, refusals.

A count belongs to a position: all records of its partition before `next_offset` are in it, each once. A process that
has both can continue from there; a process with older counts can fold the records since then again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from lastword.core.clock import now_ms
from lastword.core.record import Record
from lastword.teams.board.board_shapes import (
    FIRST_ACTION,
    FIRST_STATS,
    MOST_LISTED,
    MOST_TEAMS,
    ListedRefusal,
    PartitionCount,
    StatsRecord,
    TeamNumbers,
)
from lastword.teams.board.judging import Action, Forgotten, Judged, Refusal, judged, refusal

_OPENING_BYTES, _EXCERPT_LETTERS = 800, 200
REFUSED_KEY = "refused"
BADGES_PREFIX = "badges/"
# The name for refusals without a known team, and for those of further teams when there are too many names.
NOBODY = ""


class SourcePartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class PartitionStart(NamedTuple):
    """The log of a source partition when the board starts to follow it."""

    place: SourcePartition
    topic_id: str
    start: int
    end: int
    ended: int  # the last known end of the topic that had this name before


class JudgedRecord(NamedTuple):
    """A record of a source, and how it was judged."""

    place: SourcePartition
    topic_id: str
    offset: int
    time: int
    judged: Judged
    opening: bytes | None

    @staticmethod
    def of(topic: str, topic_id: str, record: Record) -> JudgedRecord:
        opening = None if record.value is None else record.value[:_OPENING_BYTES]
        place = SourcePartition(topic, record.partition)
        return JudgedRecord(place, topic_id, record.offset, record.timestamp, judged(topic, record), opening)


class Tally:
    """All counts. `changed` has the keys of the rows that differ from the rows that were written last."""

    def __init__(self) -> None:
        self.counts: dict[SourcePartition, PartitionCount] = {}
        self.earned: dict[str, dict[str, int]] = {}  # by team, then by badge: when
        self.listed: deque[ListedRefusal] = deque(maxlen=MOST_LISTED)
        self.changed: set[str] = set()
        self.teams: set[str] = set()
        self._named: set[str] = set()  # names in refusals: they must not take room from teams

    def know(self, teams: Iterable[str], named: Iterable[str]) -> None:
        """Adds names that have counts already."""
        self.teams.update(teams)
        self._named.update(named)

    def begin(self, log: PartitionStart) -> None:
        """Continues a partition at its count; records that expired before they were read count as missed."""
        count = self.counts.get(log.place)
        if count is None:
            count = self.counts[log.place] = PartitionCount(topic_id=log.topic_id, numbers={})
            self.changed.add(str(log.place))
        if count.topic_id != log.topic_id:
            count.missed += max(0, log.ended - count.next_offset)
            count.topic_id, count.next_offset = log.topic_id, 0
            self.changed.add(str(log.place))
        if count.next_offset < log.start:
            count.missed += log.start - count.next_offset
            self._move(log.place, count, log.start)
        elif count.next_offset > log.end:
            # The log got shorter: everything before its new end has been counted.
            self._move(log.place, count, log.end)

    def reach(self, place: SourcePartition, topic_id: str, offset: int) -> None:
        """Moves on to `offset`: no record before it is left to count."""
        count = self.counts[place]
        if count.topic_id == topic_id and offset > count.next_offset:
            self._move(place, count, offset)

    def take(self, entry: JudgedRecord) -> bool:
        """Counts a record; False if it is counted already, or if its topic is gone."""
        count = self.counts[entry.place]
        if entry.topic_id != count.topic_id or entry.offset < count.next_offset:
            return False
        self._move(entry.place, count, entry.offset + 1)
        verdict = entry.judged
        if isinstance(verdict, Action | StatsRecord) and not self.admit(verdict.team):
            verdict = refusal("too_many_teams", verdict.team)
        match verdict:
            case Action(team):
                count.actions[team] = count.actions.get(team, 0) + 1
                self.award(team, FIRST_ACTION, _moment(entry.time))
            case StatsRecord(team, processed, flagged):
                before = count.numbers.get(team)
                most = (before.most_processed, before.most_flagged) if before else (0, 0)
                count.numbers[team] = TeamNumbers(
                    processed, flagged, entry.time, max(processed, most[0]), max(flagged, most[1])
                )
                self.award(team, FIRST_STATS, _moment(entry.time))
            case Forgotten(team):
                count.numbers.pop(team, None)
            case Refusal():
                self._refuse(count, entry, verdict)
        return True

    def award(self, team: str, badge: str, at: int) -> None:
        """Gives a team a badge that it does not have yet."""
        earned = self.earned.setdefault(team, {})
        if badge not in earned:
            earned[badge] = at
            self.changed.add(f"{BADGES_PREFIX}{team}")

    def admit(self, team: str) -> bool:
        """Whether the board has room for the team."""
        if team not in self.teams:
            if len(self.teams) >= MOST_TEAMS:
                return False
            self.teams.add(team)
        return True

    def _refuse(self, count: PartitionCount, entry: JudgedRecord, verdict: Refusal) -> None:
        name = verdict.team if verdict.team is not None and self._may_name(verdict.team) else NOBODY
        reasons = count.refused.setdefault(name, {})
        reasons[verdict.reason] = reasons.get(verdict.reason, 0) + 1
        self.listed.append(
            ListedRefusal(
                *entry.place,
                entry.offset,
                entry.time,
                verdict.team,
                verdict.reason,
                verdict.words,
                None if entry.opening is None else entry.opening.decode(errors="replace")[:_EXCERPT_LETTERS],
            )
        )
        self.changed.add(REFUSED_KEY)

    def _may_name(self, team: str) -> bool:
        if team not in self._named:
            if len(self._named) >= MOST_TEAMS:
                return False
            self._named.add(team)
        return True

    def _move(self, place: SourcePartition, count: PartitionCount, offset: int) -> None:
        if count.next_offset != offset:
            count.next_offset = offset
            self.changed.add(str(place))


def _moment(time: int) -> int:
    """When a record was written, by its writer's clock; now, if that time is missing or in the future."""
    now = now_ms()
    return time if 0 < time <= now else now
