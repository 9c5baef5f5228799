"""The fold of the board: whatever is kept together, and wherever it begins anew, it counts every record once."""

from __future__ import annotations

import json

import pytest

from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.teams.board.board_rows import BoardRows, rows_of
from lastword.teams.board.board_shapes import MOST_TEAMS
from lastword.teams.board.tally import JudgedRecord, SourcePartition, Tally
from support.board_logs import ID, action, begun, board_with_rows, stats
from support.board_reference import Recount, recount_of_tally

PARTITIONS = 2


def fresh(*topics: str) -> Tally:
    tally = BoardRows().tally()
    for topic in topics or ("actions", "team_stats"):
        for partition in range(PARTITIONS):
            tally.begin(begun(topic, partition))
    return tally


def take(tally: Tally, topic: str, *values: tuple[bytes | None, bytes | None], start: int = 0) -> None:
    for offset, (key, value) in enumerate(values, start):
        tally.take(JudgedRecord.of(topic, ID, Record(key, value, 0, offset, 1000 + offset)))


def restarted(tally: Tally) -> Tally:
    return board_with_rows(rows_of(tally, {str(place) for place in tally.counts} | tally.changed)).tally()


def test_valid_actions_are_counted_and_refused_ones_change_nothing_but_their_own_count() -> None:
    tally = fresh()
    take(tally, "actions", (None, action("a")), (None, action("b")), (b"key", action("a")))
    before = recount_of_tally(tally)
    take(tally, "actions", (None, b"{}"), (None, None), (None, action("")), start=3)
    assert before == Recount({"a": 2, "b": 1}, {}, 0)
    assert recount_of_tally(tally) == Recount({"a": 2, "b": 1}, {}, 3)
    assert [(each.offset, each.reason, each.team) for each in tally.listed] == [
        (3, "missing_field", None),
        (4, "tombstone", None),
        (5, "empty_field", None),
    ]
    assert tally.earned == {"a": {"first_action": 1000}, "b": {"first_action": 1001}}


def test_the_latest_valid_numbers_are_kept_whatever_comes_after_them() -> None:
    tally = fresh()
    take(tally, "team_stats", (b"a", stats("a", 5, 1)), (b"a", stats("a", 9, 2)), (b"a", b"not json"))
    assert recount_of_tally(tally) == Recount({}, {"a": (9, 2)}, 1)
    # Compaction has left the refused record alone, and the board still knows.
    assert recount_of_tally(restarted(tally)) == Recount({}, {"a": (9, 2)}, 1)


def test_counters_that_go_back_are_shown_and_marked_until_they_are_where_they_were() -> None:
    tally = fresh()
    marks = []
    for offset, (processed, flagged) in enumerate([(10, 2), (4, 1), (9, 2), (10, 2), (10, 1)]):
        take(tally, "team_stats", (b"a", stats("a", processed, flagged)), start=offset)
        numbers = restarted(tally).counts[SourcePartition("team_stats", 0)].numbers["a"]
        marks.append((numbers.processed, numbers.flagged, numbers.is_reset))
    assert marks == [(10, 2, False), (4, 1, True), (9, 2, True), (10, 2, False), (10, 1, True)]


def test_a_tombstone_takes_the_numbers_away_and_leaves_the_badge() -> None:
    tally = fresh()
    take(tally, "team_stats", (b"a", stats("a", 10, 2)), (b"a", None), (b"b", None))
    assert recount_of_tally(tally) == Recount({}, {}, 0)
    assert tally.earned == {"a": {"first_stats": 1000}}
    take(tally, "team_stats", (b"a", stats("a", 1, 0)), start=3)
    assert not tally.counts[SourcePartition("team_stats", 0)].numbers["a"].is_reset


def test_only_so_many_teams_have_room_and_refused_names_take_none_of_it() -> None:
    tally = fresh()
    wrong = json.dumps({"team": "nobody", "customer": ""}).encode()
    refused = MOST_TEAMS + 6
    take(tally, "actions", *((None, wrong.replace(b"nobody", b"n%d" % number)) for number in range(refused)))
    # Room for three more teams is left.
    others = [f"team-{number}" for number in range(MOST_TEAMS - 3)]
    take(tally, "actions", *((None, action(name)) for name in (*others, *"abcdab")), start=refused)
    counted = dict.fromkeys(others, 1)
    assert recount_of_tally(tally) == Recount({**counted, "a": 2, "b": 2, "c": 1}, {}, refused + 1)
    assert tally.listed[-1].reason == "too_many_teams"
    # So many names, and all others together.
    assert {
        team: sum(reasons.values()) for team, reasons in tally.counts[SourcePartition("actions", 0)].refused.items()
    } == {**{f"n{number}": 1 for number in range(MOST_TEAMS)}, "": 7}
    again = restarted(tally)
    take(again, "actions", (None, action("d")), (None, action("c")), start=refused + len(others) + 6)
    assert recount_of_tally(again) == Recount({**counted, "a": 2, "b": 2, "c": 2}, {}, refused + 2)


def test_the_last_hundred_refused_records_are_listed_with_an_excerpt() -> None:
    tally = fresh()
    take(tally, "actions", *((None, b'"%d' % number + b"\xff" * 5000) for number in range(120)))
    assert [each.offset for each in tally.listed] == list(range(20, 120))
    assert tally.listed[0].excerpt == '"20' + "\ufffd" * 197
    assert list(restarted(tally).listed) == list(tally.listed)
    assert max(len(row) for row in rows_of(tally, tally.changed).values()) < 200_000


def test_a_topic_that_was_made_again_is_counted_from_its_start_and_the_counts_stay() -> None:
    tally = fresh()
    take(tally, "actions", (None, action("a")), (None, action("a")))
    tally.begin(begun("actions", 0, identity="another", ended=5))
    tally.take(JudgedRecord.of("actions", ID, Record(None, action("a"), 0, 2, 1)))
    tally.take(JudgedRecord.of("actions", "another", Record(None, action("a"), 0, 0, 1)))
    assert recount_of_tally(tally).actions == {"a": 3}
    # The old one was known to have three more.
    assert tally.counts[SourcePartition("actions", 0)].missed == 3


def test_what_expired_before_it_was_counted_is_told() -> None:
    tally = fresh()
    take(tally, "actions", (None, action("a")))
    tally.begin(begun("actions", 0, start=7))
    tally.take(JudgedRecord.of("actions", ID, Record(None, action("a"), 0, 7, 1)))
    assert (
        recount_of_tally(restarted(tally)).actions,
        restarted(tally).counts[SourcePartition("actions", 0)].missed,
    ) == (
        {"a": 2},
        6,
    )


def test_a_log_that_was_cut_short_goes_on_at_its_end() -> None:
    tally = fresh()
    take(tally, "actions", *((None, action("a")) for _ in range(5)))
    tally.begin(begun("actions", 0, end=3))
    assert tally.counts[SourcePartition("actions", 0)].next_offset == 3


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"format": 2}', b'{"format": 1}', b'{"format": 1, "numbers": 7}'])
def test_a_row_that_is_not_the_boards_is_an_error_with_what_to_do(value: bytes) -> None:
    with pytest.raises(LastwordError, match="delete the topic, and the board counts again from the start"):
        BoardRows().take(Record(b"actions/0", value, 0, 3, 0))


def test_rows_of_registered_teams_are_anybodys_and_pass_over_what_they_are_not() -> None:
    kept = BoardRows()
    for key, value in [
        (b"team/a", b'{"registered": 7}'),
        (b"team/b", b"{"),
        (b"team/c", b'{"registered": "yes"}'),
        (b"team/" + b"x" * 101, b'{"registered": 7}'),
        (b"team/d", b'{"registered": 7}'),
        (b"team/d", None),
        (b"something else", b"{"),
        (None, b"{"),
    ]:
        assert kept.take(Record(key, value, 0, 0, 0)) is False
    assert kept.registered == {"a": 7}
