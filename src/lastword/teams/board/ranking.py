"""The board itself: every team with its numbers, in order. An unknown number is null, never 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from lastword.teams.board.board_shapes import (
    REASONS,
    SYMBOLS,
    Badge,
    BoardAnswer,
    BoardState,
    ListedRefusal,
    RefusedAnswer,
    RefusedCount,
    RefusedTotal,
    Team,
    TeamNumbers,
)
from lastword.teams.board.presence import TeamPresence
from lastword.teams.board.rates import Rates
from lastword.teams.board.tally import NOBODY, Tally

_NUMBER = re.compile(r"([0-9]+)")


@dataclass(frozen=True, kw_only=True)
class Board:
    """The board at one moment, with the counts of all refusals so far and the last refused records in full."""

    at: int
    state: BoardState  # "connecting" while a topic can't be read
    why: str | None
    written: int | None  # when board_state was written last
    missed: int
    teams: tuple[Team, ...]
    refused: tuple[RefusedCount, ...]
    last_refused: tuple[ListedRefusal, ...]

    def answer(self) -> BoardAnswer:
        """The board as it is sent."""
        reasons: Counter[str] = Counter()
        for each in self.refused:
            reasons[each.reason] += each.count
        return BoardAnswer(
            at=self.at,
            state=self.state,
            written=self.written,
            missed=self.missed,
            refused=RefusedTotal(reasons.total(), dict(sorted(reasons.items()))),
            teams=list(self.teams),
        )

    def refused_answer(self) -> RefusedAnswer:
        """The refused records as they are sent."""
        return RefusedAnswer(self.at, list(self.refused), list(self.last_refused))

    def as_unreachable(self, why: str | None) -> Board:
        """The board when it is not followed any more: lag and rates are unknown."""
        teams = tuple(structs.replace(team, lag=None, actions_per_s=None, processed_per_s=None) for team in self.teams)
        return replace(self, state="connecting", why=why, teams=teams)


def ranked(
    tally: Tally, seen: Mapping[str, TeamPresence], actions_rate: Rates, processed_rate: Rates
) -> tuple[Team, ...]:
    """The teams by badges, then by actions, then by name; numbers in names sort as numbers: team-2 before team-10."""
    actions, numbers = actions_of(tally), numbers_of(tally)
    refused: Counter[str] = Counter()
    for count in tally.counts.values():
        for team, reasons in count.refused.items():
            refused[team] += sum(reasons.values())
    badges = {team: _badges(tally.earned.get(team, {})) for team in seen}
    order = sorted(seen, key=lambda team: (-len(badges[team]), -actions[team], _natural(team), team))
    teams = []
    for rank, name in enumerate(order, 1):
        of_team = numbers.get(name)
        teams.append(
            Team(
                rank=rank,
                team=name,
                kind=seen[name].kind,
                badges=badges[name],
                lag=seen[name].lag,
                actions=actions[name],
                processed=None if of_team is None else of_team.processed,
                flagged=None if of_team is None else of_team.flagged,
                actions_per_s=actions_rate.of(name),
                processed_per_s=processed_rate.of(name),
                reset=of_team is not None and of_team.is_reset,
                refused=refused[name],
            )
        )
    return tuple(teams)


def _badges(earned: Mapping[str, int]) -> list[Badge]:
    return [Badge(name, symbol, earned[name]) for name, symbol in SYMBOLS.items() if name in earned]


def actions_of(tally: Tally) -> Counter[str]:
    """The valid actions of each team, over all partitions."""
    total: Counter[str] = Counter()
    for count in tally.counts.values():
        total.update(count.actions)
    return total


def numbers_of(tally: Tally) -> dict[str, TeamNumbers]:
    """The latest numbers of each team; for a key in two partitions the later row, as in any table.

    Not `core.split_keys.tie_break`, which takes a record: a tally keeps numbers and no records. The order is the same.
    """
    newest: dict[str, tuple[tuple[int, int], TeamNumbers]] = {}
    for place, count in tally.counts.items():
        for team, numbers in count.numbers.items():
            age = (numbers.at, place.partition)
            if team not in newest or age > newest[team][0]:
                newest[team] = (age, numbers)
    return {team: numbers for team, (_, numbers) in newest.items()}


def refused_counts(tally: Tally) -> tuple[RefusedCount, ...]:
    """How often records were refused, by team and reason; the team is None where it is unknown."""
    total: Counter[tuple[str, str]] = Counter()
    for count in tally.counts.values():
        for team, reasons in count.refused.items():
            for reason, times in reasons.items():
                total[team, reason] += times
    order = sorted(total, key=lambda each: (_natural(each[0]), *each))
    return tuple(
        RefusedCount(None if team == NOBODY else team, reason, REASONS.get(reason, reason), total[team, reason])
        for team, reason in order
    )


def last_refused(tally: Tally) -> tuple[ListedRefusal, ...]:
    """The last refused records, the newest timestamp first."""
    return tuple(
        sorted(tally.listed, key=lambda each: (each.time, each.topic, each.partition, each.offset), reverse=True)
    )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """The name as a list of texts and numbers, which can be compared."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(name) if part]
