"""Who is on the board, in which order, and what is not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lastword.core.position import Position
from lastword.kafka.client.group_members import GroupNow
from lastword.teams.board.board_rows import BoardRows
from lastword.teams.board.board_shapes import Badge, PartitionCount, Team, TeamNumbers
from lastword.teams.board.presence import Groups, Status, TeamPresence, seen_teams
from lastword.teams.board.ranking import ranked
from lastword.teams.board.rates import Rates
from lastword.teams.board.tally import SourcePartition, Tally
from support.cluster_routes import status_of

NOW = 1_000_000
BATCH = status_of("teams", NOW)["batch"]


def status(**changed: Any) -> Status | None:
    row = {**status_of("teams", NOW), "lag": 3, "tables": {"team_stats": {"team-1": {}}}, **changed}
    return Status.read(json.dumps(row).encode())


def groups(at: int = NOW, **found: GroupNow) -> Groups:
    return Groups(at=at, first=Position({0: 5, 1: 0}), end=Position({0: 10, 1: 0}), groups=found)


def group(members: int = 0, has_topic: bool = False, **committed: int) -> GroupNow:
    position = Position({int(partition[1:]): offset for partition, offset in committed.items()})
    return GroupNow(members=members, has_topic=has_topic, committed=position)


def board(tally: Tally, *teams: str) -> tuple[Team, ...]:
    return ranked(tally, {team: TeamPresence(kind="outside") for team in teams}, Rates(), Rates())


def test_the_order_is_by_badges_then_actions_then_name_with_numbers_as_such() -> None:
    tally = BoardRows().tally()
    tally.counts[SourcePartition("actions", 0)] = PartitionCount(
        topic_id="", numbers={}, actions={"late": 2, "team-10": 1, "team-2": 1}
    )
    tally.counts[SourcePartition("actions", 1)] = PartitionCount(topic_id="", numbers={}, actions={"late": 2, "b": 3})
    for badge in ("connected", "first_stats"):
        tally.award("zero", badge, 7)
    for team in ("late", "team-10", "team-2", "b"):
        tally.award(team, "first_action", 7)
    names = [(each.rank, each.team) for each in board(tally, "late", "team-10", "zero", "b", "team-2", "nothing")]
    assert names == [(1, "zero"), (2, "late"), (3, "b"), (4, "team-2"), (5, "team-10"), (6, "nothing")]


def test_names_of_any_kind_can_be_put_in_order() -> None:
    names = ["7", "a7", "a07", "٣", "", "a", "7a", "é", "9" * 100]
    assert {each.team for each in board(BoardRows().tally(), *names)} == set(names)


def test_what_is_not_known_is_none_and_what_is_counted_is_a_number() -> None:
    (team,) = board(BoardRows().tally(), "a")
    assert (team.lag, team.processed, team.flagged, team.actions_per_s, team.processed_per_s) == (None,) * 5
    assert (team.actions, team.refused, team.reset, team.badges) == (0, 0, False, [])


def test_numbers_in_two_partitions_are_those_that_were_written_later() -> None:
    tally = BoardRows().tally()
    for partition, (at, processed) in enumerate([(5, 1), (9, 2), (7, 3)]):
        numbers = {"a": TeamNumbers(processed, 0, at, processed, 0)}
        tally.counts[SourcePartition("team_stats", partition)] = PartitionCount(topic_id="", numbers=numbers)
    assert board(tally, "a")[0].processed == 2


def test_badges_are_shown_in_their_order_whenever_they_were_earned() -> None:
    tally = BoardRows().tally()
    for badge, at in (("first_stats", 1), ("connected", 2), ("first_action", 3)):
        tally.award("a", badge, at)
        tally.award("a", badge, 99)
    assert board(tally, "a")[0].badges == [
        Badge("connected", "🔌", 2),
        Badge("first_action", "📤", 3),
        Badge("first_stats", "📊", 1),
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (status(), TeamPresence(kind="inside", is_connected=True, lag=3)),
        (status(lag=None), TeamPresence(kind="inside", is_connected=True)),
        (status(batch={**BATCH, "tasks": 2}), TeamPresence(kind="inside", is_connected=True, shares_work=True, lag=3)),
        (status(most_tasks=2), TeamPresence(kind="inside", is_connected=True, shares_work=True, lag=3)),
        (status(most_tasks=0), TeamPresence(kind="inside", is_connected=True, lag=3)),
        (status(most_tasks=5, at=NOW - 10_000), TeamPresence(kind="inside", shares_work=True)),
        (status(at=NOW - 9_999), TeamPresence(kind="inside", is_connected=True, lag=3)),
        (status(at=NOW - 10_000), TeamPresence(kind="inside")),
    ],
)
def test_a_team_inside_is_what_the_pipelines_status_says(said: Status | None, expected: TeamPresence) -> None:
    assert seen_teams(said, None, (), (), NOW) == {"team-1": expected}
    # A group of its name, or a registration, does not make it one outside.
    told = seen_teams(said, groups(NOW, **{"team-1": group(2, True)}), ("team-1",), ("team-1",), NOW)
    assert told == {"team-1": expected}


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"null", b"[]", b"{}", b'{"at": 1}', json.dumps({"at": "1"}).encode()]
)
def test_what_is_no_status_says_nothing(value: bytes | None) -> None:
    assert Status.read(value) is None
    assert status(at="now") is None
    assert status(batch=[]) is None
    assert status(batch={}) is None
    assert status(most_tasks="2") is None
    assert status(tables={}) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (group(1, True), TeamPresence(kind="outside", is_connected=True)),
        (group(2, True), TeamPresence(kind="outside", is_connected=True, shares_work=True)),
        (group(0, False, p0=7), TeamPresence(kind="outside", lag=3)),
        (group(1, True, p0=10), TeamPresence(kind="outside", is_connected=True, lag=0)),
        # Only the partition without records was committed.
        (group(0, False, p1=0), TeamPresence(kind="outside")),
        # The topic was made again since.
        (group(0, False, p0=99, p1=99), TeamPresence(kind="outside", lag=0)),
    ],
)
def test_a_team_outside_is_what_its_group_says(found: GroupNow, expected: TeamPresence) -> None:
    assert seen_teams(None, groups(mine=found), (), (), NOW) == {"mine": expected}
    assert seen_teams(None, groups(NOW - 10_000, mine=found), (), (), NOW) == {"mine": TeamPresence(kind="outside")}


def test_a_group_that_reads_no_users_is_a_team_only_if_one_is_named_so() -> None:
    found = groups(stranger=group(1), mine=group(1), teams=group(0, False, p0=7))
    assert set(seen_teams(None, found, (), ("mine", "silent"), NOW)) == {"mine", "silent"}
    assert seen_teams(None, found, (), ("mine",), NOW)["mine"].is_connected


def test_a_rate_needs_a_second_and_covers_about_ten() -> None:
    rates = Rates()
    assert rates.of("a") is None
    rates.note(0.0, {"a": 0, "b": 5})
    rates.note(0.2, {"a": 1, "b": 5})
    assert rates.of("a") is None
    rates.note(2.0, {"a": 4, "b": 5, "c": 9})
    assert (rates.of("a"), rates.of("b"), rates.of("c")) == (2.0, 0.0, None)
    for second in range(3, 40):
        rates.note(float(second), {"a": 4, "b": 5 + 3 * second})
    assert (rates.of("a"), rates.of("b")) == (0.0, 3.0)
    rates.note(40.0, {"a": 3, "b": 0})
    assert (rates.of("a"), rates.of("b")) == (None, None)
