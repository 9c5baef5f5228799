"""The board on a real cluster: what it shows, what it refuses, and what it keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec
import pytest

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, NotFound, NotReady
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.teams.board.board_topics import STATUS
from lastword.teams.board.live import LiveBoard
from lastword.teams.board.registering import register_team
from lastword.teams.users.fraud_topics import make_fraud_topics
from support.board_reference import Recount
from support.boards import (
    act,
    action,
    badges_of,
    board_topics,
    counted_from_scratch,
    expire,
    recount_of_state,
    recount_shown,
    row_of,
    stats,
    write,
    write_status,
)
from support.command_line import CommandLine
from support.waiting import eventually


@pytest.fixture
def topics(connection: Connection) -> Iterator[Connection]:
    with board_topics(connection) as made:
        yield made


def test_actions_are_counted_and_numbers_shown_as_they_come(topics: Connection) -> None:
    act(topics, "team-1", "team-1", "team-2")
    write(topics, "team_stats", ("team-1", stats("team-1", 5, 2)), ("team-1", stats("team-1", 9, 3)))
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        assert recount_shown(live) == Recount({"team-1": 2, "team-2": 1}, {"team-1": (9, 3)}, 0)
        act(topics, "team-2", "team-2", "team-10")
        eventually(
            lambda: recount_shown(live) == Recount({"team-1": 2, "team-2": 3, "team-10": 1}, {"team-1": (9, 3)}, 0)
        )
        # By badges, then by actions, then by name.
        assert [team.team for team in live.board.teams] == ["team-1", "team-2", "team-10"]
        assert badges_of(live, "team-1") == ["first_action", "first_stats"]
        eventually(lambda: row_of(live, "team-2")["actions_per_s"] is not None)
        assert row_of(live, "team-2")["processed"] is row_of(live, "team-2")["lag"] is None
    assert recount_shown(live) == counted_from_scratch(topics)


REFUSED: list[tuple[str, str | None, bytes | None, str]] = [
    ("actions", None, None, "tombstone"),
    ("actions", None, b"not json", "not_json"),
    ("actions", None, b"[1]", "not_object"),
    ("actions", None, b'{"customer": "c", "type": "t", "reason": "r"}', "missing_field"),
    ("actions", None, b'{"customer": 7, "type": "t", "reason": "r", "team": "team-1"}', "not_text"),
    ("actions", None, b'{"customer": "", "type": "t", "reason": "r", "team": "team-1"}', "empty_field"),
    ("actions", None, action("x" * 101), "long_team"),
    ("team_stats", "team-2", stats("team-1", 100, 100), "key_not_team"),
    ("team_stats", "team-1", stats("team-1", -1, 0), "not_count"),
    ("team_stats", "team-1", b'{"team": "team-1", "processed": 9, "flagged": true}', "not_count"),
    ("team_stats", "team-1", stats("team-1", 1, 2), "flagged_over_processed"),
    ("team_stats", "team-1", b"null", "not_object"),
    ("team_stats", "ghost", b"{}", "missing_field"),
]


def test_refused_records_of_every_kind_are_listed_and_change_nothing_else(topics: Connection) -> None:
    act(topics, "team-1")
    write(topics, "team_stats", ("team-1", stats("team-1", 50, 5)))
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        before = msgspec.to_builtins(live.board.answer())
        for wrong in ("actions", "team_stats"):
            write(topics, wrong, *((key, value) for topic, key, value, _ in REFUSED if topic == wrong))
        eventually(lambda: live.board.answer().refused.total == len(REFUSED))
        after = live.board
    passing = ("refused", "actions_per_s", "processed_per_s", "lag")

    def lasting(board: dict[str, list[dict[str, object]]]) -> list[dict[str, object]]:
        return [{name: told for name, told in team.items() if name not in passing} for team in board["teams"]]

    assert lasting(msgspec.to_builtins(after.answer())) == lasting(before)
    assert sorted(each.reason for each in after.last_refused) == sorted(reason for *_, reason in REFUSED)
    for each in after.last_refused:
        assert (each.topic, each.reason) in {(topic, reason) for topic, _, _, reason in REFUSED}
        assert each.offset >= 0
        assert 0 < each.time <= now_ms()
    assert {each.excerpt for each in after.last_refused} >= {None, "not json", "[1]", "null"}
    counts = {(each.team, each.reason): each.count for each in after.refused}
    assert counts[("team-1", "not_count")] == 2
    assert counts[("ghost", "missing_field")] == counts[(None, "tombstone")] == 1
    assert row_of(live, "team-1")["refused"] == 7


def test_what_a_transaction_took_back_is_not_counted(topics: Connection) -> None:
    act(topics, "team-1")
    taking_back = topics.producer(transactional_id="test-board-aborts")
    taking_back.init_transactions(30)
    taking_back.begin_transaction()
    taking_back.produce("actions", action("team-1"), partition=0)
    taking_back.flush(30)
    taking_back.abort_transaction(30)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        assert recount_shown(live).actions == {"team-1": 1}


def test_the_teams_inside_the_pipeline_have_its_badges_and_its_lag(topics: Connection) -> None:
    write_status(topics, ["team-1", "team-2"], tasks=2, lag=12)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: badges_of(live, "team-2") == ["connected", "shared_work"])
        assert (row_of(live, "team-2")["kind"], row_of(live, "team-2")["lag"]) == ("inside", 12)
        # It says nothing for longer than ten seconds: what it said last is not about now.
        write_status(topics, ["team-1", "team-2"], at=now_ms() - 11_000, tasks=1)
        eventually(lambda: row_of(live, "team-2")["lag"] is None)
        assert badges_of(live, "team-2") == ["connected", "shared_work"]


def test_a_team_whose_work_was_ever_shared_has_the_badge_for_good(topics: Connection) -> None:
    # The pipeline of an older version tells of its last batch alone: the badge is for any of them.
    write_status(topics, ["team-1"], tasks=3)
    write_status(topics, ["team-1"], tasks=1)
    # A newer one says it in every status, also when nobody looked while it was so.
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: "shared_work" in badges_of(live, "team-1"))
        write_status(topics, ["team-2"], tasks=1, most_tasks=5)
        eventually(lambda: "shared_work" in badges_of(live, "team-2"))
    # Another board, when nothing says so any more but its own state.
    delete_topic(topics, STATUS)
    write_status(topics, ["team-1", "team-2"], tasks=1)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: row_of(live, "team-1").get("kind") == "inside")
        for team in ("team-1", "team-2"):
            assert badges_of(live, team) == ["connected", "shared_work"]


def test_the_command_that_is_advised_makes_topics_that_take_what_teams_write(
    topics: Connection, lastword: CommandLine
) -> None:
    for topic in ("new_users", "actions", "team_stats"):
        delete_topic(topics, topic)
    refused = lastword.run("board")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no topic 'actions' and no topic 'team_stats' at " in refused.stderr
    (advised,) = re.findall(r"make them with  lastword (.+?), or ", refused.stderr)
    lastword(*advised.split())
    # As a team does it: actions have no key, and numbers have that of the team.
    act(topics, "team-1", "team-2")
    write(topics, "team_stats", ("team-1", stats("team-1", 5, 2)))
    rows = [json.loads(line) for line in lastword("board", "--json").splitlines()]
    assert [(row["team"], row["actions"], row["processed"]) for row in rows] == [("team-1", 1, 5), ("team-2", 1, None)]
    # What is there stays as it is.
    assert lastword(*advised.split()).count("team-") == 2


def test_an_old_status_gives_no_badge(topics: Connection) -> None:
    write_status(topics, ["team-1"], at=now_ms() - 11_000, tasks=1)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: row_of(live, "team-1").get("kind") == "inside")
        assert (badges_of(live, "team-1"), row_of(live, "team-1")["lag"]) == ([], None)


def test_an_outside_team_earns_its_badges_with_its_group(topics: Connection) -> None:
    write(topics, "new_users", *((None, b"{}") for _ in range(20)))
    register_team(topics, "team-16")
    register_team(topics, "team-16")
    GroupPosition(topics, "teams").commit({"new_users": Position({0: 1})})
    members = [topics.consumer(group_id="team-16", auto_offset_reset="earliest") for _ in range(2)]
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        assert (badges_of(live, "team-16"), row_of(live, "team-16")["kind"]) == ([], "outside")
        try:

            def polled(count: int) -> None:
                for member in members[:count]:
                    member.poll(0.1)

            members[0].subscribe(["new_users"])

            def has_joined() -> bool:
                polled(1)
                return badges_of(live, "team-16") == ["connected"]

            eventually(has_joined)
            assert row_of(live, "team-16")["lag"] is None
            members[1].subscribe(["new_users"])

            def share() -> bool:
                polled(2)
                return badges_of(live, "team-16") == ["connected", "shared_work"]

            eventually(share)
        finally:
            for member in members:
                member.close()
        _, end = log_bounds(topics, "new_users")
        commit = GroupPosition(topics, "team-16").commit
        commit({"new_users": Position({p: max(0, last - 1) for p, last in end.items()})})
        behind = sum(min(1, last) for last in end.values())
        eventually(lambda: row_of(live, "team-16")["lag"] == behind)
        commit({"new_users": end})
        eventually(lambda: row_of(live, "team-16")["lag"] == 0)
        # Once earned they stay; and the pipeline's own group is no team.
        assert badges_of(live, "team-16") == ["connected", "shared_work"]
        assert row_of(live, "teams") == {}


def test_a_name_that_no_team_can_have_is_not_registered(connection: Connection) -> None:
    for name in ("", "x" * 101):
        with pytest.raises(BadInput, match="must have 1 to 100 characters"):
            register_team(connection, name)


def test_what_was_counted_stays_when_the_actions_expire(topics: Connection) -> None:
    act(topics, *["team-1"] * 30)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: recount_of_state(topics).actions == {"team-1": 30})
        _, end = log_bounds(topics, "actions")
        for partition, offset in end.items():
            expire(topics, "actions", partition, offset)
        act(topics, "team-1")
        eventually(lambda: recount_shown(live).actions == {"team-1": 31})
    for writes in (False, True):
        with LiveBoard(topics, writes=writes) as again:
            board = again.wait_until_ready(120)
            assert (recount_shown(again).actions, board.missed) == ({"team-1": 31}, 0)
            assert badges_of(again, "team-1") == ["first_action"]


def test_actions_that_expired_before_they_were_counted_are_told(topics: Connection) -> None:
    act(topics, *["team-1"] * 30)
    _, end = log_bounds(topics, "actions")
    gone = {partition: offset // 2 for partition, offset in end.items()}
    for partition, offset in gone.items():
        expire(topics, "actions", partition, offset)
    with LiveBoard(topics, writes=True) as live:
        board = live.wait_until_ready(120)
        assert board.missed == sum(gone.values()) > 0
        assert recount_shown(live).actions == {"team-1": 30 - sum(gone.values())}


@pytest.mark.parametrize("is_noticed", [True, False])
def test_topics_that_are_made_again_are_counted_from_their_start_and_the_counts_stay(
    topics: Connection, is_noticed: bool
) -> None:
    act(topics, *["team-1"] * 10)
    write(topics, "team_stats", ("team-1", stats("team-1", 50, 5)))
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: recount_of_state(topics) == Recount({"team-1": 10}, {"team-1": (50, 5)}, 0))
        for topic in ("actions", "team_stats"):
            delete_topic(topics, topic)
        if is_noticed:
            eventually(lambda: live.board.state == "connecting")
        assert recount_shown(live).actions == {"team-1": 10}
        make_fraud_topics(topics)
        # More than there were before, so that the old position lies within the new topic.
        act(topics, *["team-1"] * 20)
        eventually(lambda: live.board.state == "ready" and recount_shown(live).actions == {"team-1": 30})
        assert recount_shown(live).numbers == {"team-1": (50, 5)}
    with LiveBoard(topics, writes=False) as again:
        again.wait_until_ready(120)
        assert recount_shown(again).actions == {"team-1": 30}


def test_partitions_that_are_added_are_counted_too(topics: Connection) -> None:
    delete_topic(topics, "actions")
    create_topic(topics, "actions", partitions=1, settings={"cleanup.policy": "delete"})
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        alter_topic(topics, "actions", partitions=3)
        producer = topics.producer()
        for partition in range(3):
            producer.produce("actions", action("team-1"), partition=partition)
        producer.flush(30)
        eventually(lambda: recount_shown(live).actions == {"team-1": 3})


def test_without_its_topics_there_is_no_board(connection: Connection) -> None:
    with LiveBoard(connection, writes=False) as live:
        with pytest.raises(NotFound, match="'actions'"):
            live.wait_until_ready(120)
        with pytest.raises(NotReady, match="nothing to show yet"):
            _ = live.board


def test_a_state_topic_that_could_lose_rows_is_refused(topics: Connection) -> None:
    create_topic(topics, "board_state", partitions=1, settings={"cleanup.policy": "delete"})
    with LiveBoard(topics, writes=True) as live, pytest.raises(BadInput, match="is not compacted"):
        live.wait_until_ready(120)
