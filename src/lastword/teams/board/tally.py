"""The fold of both topics: exact counts for each source partition, the newest numbers of each team, what was refused.

A count belongs to a position: all records of its partition before `next_offset` are in it, each once. Whoever keeps
both together can go on from there, and whoever has counts of an earlier moment can fold the records since again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lastword.core.clock import now_ms
from lastword.core.record import Record
from lastword.teams.board.badges import FIRST_ACTION, FIRST_STATS
from lastword.teams.board.judging import Action, Forgotten, Judged, Refusal, Stats, judged, refusal

MOST_TEAMS = 1000
MOST_LISTED = 100
_OPENING_BYTES, _EXCERPT_LETTERS = 800, 200
REFUSED_KEY = "refused"
BADGES_PREFIX = "badges/"
# Under which refusals are counted that no team is known for, or that had too many names already.
NOBODY = ""


class SourcePartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Numbers(NamedTuple):
    """The latest valid numbers of a team, when they were written, and the highest that it has ever shown."""

    processed: int
    flagged: int
    at: int
    most_processed: int
    most_flagged: int

    @property
    def is_reset(self) -> bool:
        """Whether a counter went back, and is not where it was yet."""
        return self.processed < self.most_processed or self.flagged < self.most_flagged


@dataclass(kw_only=True)
class Count:
    """What all records of one source partition before `next_offset` come to."""

    topic_id: str  # a topic that was made again has another
    next_offset: int = 0
    missed: int = 0  # offsets that were gone before they were read
    actions: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, Numbers] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)  # by team, then by reason


class Listed(NamedTuple):
    """A refused record, as it is listed."""

    topic: str
    partition: int
    offset: int
    time: int
    team: str | None
    reason: str
    words: str
    excerpt: str | None  # None for a tombstone


class Begun(NamedTuple):
    """A source partition is read on, of the topic that it is now."""

    place: SourcePartition
    topic_id: str
    start: int
    end: int
    ended: int  # where the one that was there before is known to have ended


class JudgedRecord(NamedTuple):
    """A record that was judged."""

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
    """Everything that is counted. `changed` has the keys of the rows that differ from those that were kept last."""

    def __init__(self) -> None:
        self.counts: dict[SourcePartition, Count] = {}
        self.earned: dict[str, dict[str, int]] = {}  # by team, then by badge: when
        self.listed: deque[Listed] = deque(maxlen=MOST_LISTED)
        self.changed: set[str] = set()
        self.teams: set[str] = set()
        self._named: set[str] = set()  # in refusals, which must not take room from teams

    def know(self, teams: Iterable[str], named: Iterable[str]) -> None:
        """Names that are counted already."""
        self.teams.update(teams)
        self._named.update(named)

    def begin(self, begun: Begun) -> None:
        """A partition goes on where it was; what was gone before it was read is counted as missed."""
        count = self.counts.get(begun.place)
        if count is None:
            count = self.counts[begun.place] = Count(topic_id=begun.topic_id)
            self.changed.add(str(begun.place))
        if count.topic_id != begun.topic_id:
            count.missed += max(0, begun.ended - count.next_offset)
            count.topic_id, count.next_offset = begun.topic_id, 0
            self.changed.add(str(begun.place))
        if count.next_offset < begun.start:
            count.missed += begun.start - count.next_offset
            self._move(begun.place, count, begun.start)
        elif count.next_offset > begun.end:
            # The log was cut short: what lies before its end was counted.
            self._move(begun.place, count, begun.end)

    def reach(self, place: SourcePartition, topic_id: str, offset: int) -> None:
        """There is nothing to count before `offset` any more."""
        count = self.counts[place]
        if count.topic_id == topic_id and offset > count.next_offset:
            self._move(place, count, offset)

    def take(self, entry: JudgedRecord) -> bool:
        """Counts a record; False for one that is counted already, or is of a topic that is gone."""
        count = self.counts[entry.place]
        if entry.topic_id != count.topic_id or entry.offset < count.next_offset:
            return False
        self._move(entry.place, count, entry.offset + 1)
        said = entry.judged
        if isinstance(said, Action | Stats) and not self.admit(said.team):
            said = refusal("too_many_teams", said.team)
        match said:
            case Action(team):
                count.actions[team] = count.actions.get(team, 0) + 1
                self.award(team, FIRST_ACTION, _moment(entry.time))
            case Stats(team, processed, flagged):
                before = count.numbers.get(team)
                most = (before.most_processed, before.most_flagged) if before else (0, 0)
                count.numbers[team] = Numbers(
                    processed, flagged, entry.time, max(processed, most[0]), max(flagged, most[1])
                )
                self.award(team, FIRST_STATS, _moment(entry.time))
            case Forgotten(team):
                count.numbers.pop(team, None)
            case Refusal():
                self._refuse(count, entry, said)
        return True

    def award(self, team: str, badge: str, at: int) -> None:
        """Gives a badge that the team does not have; the team is known, or has no place."""
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

    def _refuse(self, count: Count, entry: JudgedRecord, said: Refusal) -> None:
        name = said.team if said.team is not None and self._may_name(said.team) else NOBODY
        reasons = count.refused.setdefault(name, {})
        reasons[said.reason] = reasons.get(said.reason, 0) + 1
        self.listed.append(
            Listed(
                *entry.place,
                entry.offset,
                entry.time,
                said.team,
                said.reason,
                said.words,
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

    def _move(self, place: SourcePartition, count: Count, offset: int) -> None:
        if count.next_offset != offset:
            count.next_offset = offset
            self.changed.add(str(place))


def _moment(time: int) -> int:
    """When a record was written, by its writer's clock; now, where that says nothing or the future."""
    now = now_ms()
    return time if 0 < time <= now else now
