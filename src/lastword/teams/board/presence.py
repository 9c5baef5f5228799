"""Which teams are there now: the teams inside the pipeline, by its status, and those outside, by their groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lastword.core.position import Position
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.kafka.client.group_members import GroupNow
from lastword.teams.board.board_shapes import CONNECTED, MOST_TEAMS, SHARED_WORK, TeamKind
from lastword.teams.board.board_topics import PIPELINE, STATS
from lastword.teams.board.judging import is_team_name

# An older status says nothing about the present.
_YOUNG_MS = 10_000


@dataclass(frozen=True, kw_only=True)
class TeamPresence:
    """A team at one moment."""

    kind: TeamKind
    is_connected: bool = False
    shares_work: bool = False
    lag: int | None = None  # None while the lag is unknown

    @property
    def badges(self) -> list[str]:
        earned = {CONNECTED: self.is_connected, SHARED_WORK: self.shares_work}
        return [badge for badge, is_earned in earned.items() if is_earned]


@dataclass(frozen=True, kw_only=True)
class Status:
    """The last status row of the pipeline, as far as the board needs it."""

    at: int
    lag: int | None
    most_tasks: int  # the most tasks that shared a batch so far
    teams: frozenset[str]

    def after(self, before: Status | None) -> Status:
        """The same, with the most tasks of an earlier status."""
        return self if before is None else replace(self, most_tasks=max(self.most_tasks, before.most_tasks))

    @classmethod
    def read(cls, value: bytes | None) -> Status | None:
        """None for a row that is no status, or that is of a pipeline without the table of the teams."""
        row = PipelineStatus.from_json(value)
        if row is None or STATS not in row.tables:
            return None
        teams = [name for name in row.tables[STATS] if is_team_name(name)]
        return cls(
            at=row.at,
            lag=row.lag,
            # Rows of older pipelines have only the last batch.
            most_tasks=max(row.batch.tasks, row.most_tasks),
            teams=frozenset(teams[:MOST_TEAMS]),
        )


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The consumer groups that read the users, and the ends of that topic."""

    at: int
    first: Position
    end: Position
    groups: Mapping[str, GroupNow]


def seen_teams(
    status: Status | None, groups: Groups | None, known: Collection[str], registered: Collection[str], now: int
) -> dict[str, TeamPresence]:
    """Every team with its presence now; the teams in `known` have written something."""
    seen: dict[str, TeamPresence] = {team: TeamPresence(kind="outside") for team in (*known, *registered)}
    if groups is not None:
        is_young = now - groups.at < _YOUNG_MS
        for name, group in groups.groups.items():
            # A group whose name is no known team is a team only if it reads the users.
            if name != PIPELINE and (name in seen or group.has_topic or group.committed):
                seen[name] = _outside(group, groups) if is_young else TeamPresence(kind="outside")
    if status is not None:
        is_young = now - status.at < _YOUNG_MS
        lag = status.lag if is_young else None
        inside = TeamPresence(kind="inside", is_connected=is_young, shares_work=status.most_tasks >= 2, lag=lag)
        seen |= dict.fromkeys(status.teams, inside)
    return seen


def _outside(group: GroupNow, groups: Groups) -> TeamPresence:
    return TeamPresence(
        kind="outside", is_connected=group.members >= 1, shares_work=group.members >= 2, lag=_lag(group, groups)
    )


def _lag(group: GroupNow, groups: Groups) -> int | None:
    """Users that the group has not committed yet; None while a partition with records has no commit."""
    if not group.committed:
        return None
    lag = 0
    for partition, end in groups.end.items():
        committed = group.committed.get(partition)
        if committed is None and end > groups.first[partition]:
            return None
        lag += max(0, end - (end if committed is None else committed))
    return lag
