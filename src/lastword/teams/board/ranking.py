"""The board itself: every team with its numbers, in order. An unknown number is null, never 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lastword.teams.board.badges import SYMBOLS
from lastword.teams.board.judging import REASONS
from lastword.teams.board.presence import Kind, TeamPresence
from lastword.teams.board.rates import Rates
from lastword.teams.board.tally import NOBODY, Numbers, Tally

_NUMBER = re.compile(r"([0-9]+)")


@dataclass(frozen=True, kw_only=True)
class Team:
    rank: int
    team: str
    kind: Kind
    badges: Mapping[str, int]  # when each was earned, in the order of SYMBOLS
    lag: int | None
    actions: int
    processed: int | None
    flagged: int | None
    actions_per_s: float | None
    processed_per_s: float | None
    reset: bool
    refused: int

    def as_json(self) -> dict[str, Any]:
        earned = [{"name": name, "symbol": SYMBOLS[name], "earned": at} for name, at in self.badges.items()]
        return {**vars(self), "badges": earned}


@dataclass(frozen=True, kw_only=True)
class Board:
    """The board at one moment, with the counts of all refusals so far and the last refused records in full."""

    at: int
    state: str  # "ready", or "connecting" while a topic can't be read
    why: str | None
    written: int | None  # when board_state was written last
    missed: int
    teams: tuple[Team, ...]
    refused: tuple[tuple[str | None, str, int], ...]  # team, reason, how often
    last_refused: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        reasons: Counter[str] = Counter()
        for _, reason, count in self.refused:
            reasons[reason] += count
        return {
            "at": self.at,
            "state": self.state,
            "written": self.written,
            "missed": self.missed,
            "refused": {"total": reasons.total(), "reasons": dict(sorted(reasons.items()))},
            "teams": [team.as_json() for team in self.teams],
        }

    def refused_json(self) -> dict[str, Any]:
        counts = [
            {"team": team, "reason": reason, "meaning": REASONS.get(reason, reason), "count": count}
            for team, reason, count in self.refused
        ]
        return {"at": self.at, "counts": counts, "last": list(self.last_refused)}

    def as_unreachable(self, why: str | None) -> Board:
        """The board when it is not followed any more: lag and rates are unknown."""
        teams = tuple(replace(team, lag=None, actions_per_s=None, processed_per_s=None) for team in self.teams)
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
    earned = {team: {name: tally.earned.get(team, {}).get(name) for name in SYMBOLS} for team in seen}
    badges = {team: {name: at for name, at in each.items() if at is not None} for team, each in earned.items()}
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


def actions_of(tally: Tally) -> Counter[str]:
    """The valid actions of each team, over all partitions."""
    total: Counter[str] = Counter()
    for count in tally.counts.values():
        total.update(count.actions)
    return total


def numbers_of(tally: Tally) -> dict[str, Numbers]:
    """The latest numbers of each team; for a key in two partitions the later row, as in any table."""
    newest: dict[str, tuple[tuple[int, int], Numbers]] = {}
    for place, count in tally.counts.items():
        for team, numbers in count.numbers.items():
            age = (numbers.at, place.partition)
            if team not in newest or age > newest[team][0]:
                newest[team] = (age, numbers)
    return {team: numbers for team, (_, numbers) in newest.items()}


def refused_counts(tally: Tally) -> tuple[tuple[str | None, str, int], ...]:
    """How often records were refused, by team and reason; the team is None where it is unknown."""
    total: Counter[tuple[str, str]] = Counter()
    for count in tally.counts.values():
        for team, reasons in count.refused.items():
            for reason, times in reasons.items():
                total[team, reason] += times
    order = sorted(total, key=lambda each: (_natural(each[0]), *each))
    return tuple((None if team == NOBODY else team, reason, total[team, reason]) for team, reason in order)


def last_refused(tally: Tally) -> tuple[dict[str, Any], ...]:
    """The last refused records, the newest timestamp first."""
    newest = sorted(tally.listed, key=lambda each: (each.time, each.topic, each.partition, each.offset), reverse=True)
    return tuple(each._asdict() for each in newest)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """The name as a list of texts and numbers, which can be compared."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(name) if part]
