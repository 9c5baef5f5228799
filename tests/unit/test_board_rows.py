"""The rows of `board_state`: the bytes that are written, rows of older versions, and damaged rows."""

from __future__ import annotations

import pytest

from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.teams.board.board_rows import BoardRows, rows_of
from lastword.teams.board.tally import JudgedRecord, SourcePartition, Tally
from support.board_logs import ID, action, begun, board_with_rows, stats

ACTIONS_ROW = (
    b'{"format":1,"topic_id":"the-topic","next_offset":2,"missed":0,"actions":{"a":1},"numbers":{},'
    b'"refused":{"":{"not_json":1}}}'
)
STATS_ROW = (
    b'{"format":1,"topic_id":"the-topic","next_offset":1,"missed":0,"actions":{},'
    b'"numbers":{"a":{"processed":5,"flagged":1,"at":1000,"most_processed":5,"most_flagged":1}},"refused":{}}'
)
REFUSED_ROW = (
    b'{"format":1,"last":[{"topic":"actions","partition":0,"offset":1,"time":1001,"team":null,'
    b'"reason":"not_json","words":"the value is not JSON","excerpt":"no"}]}'
)
WRITTEN = {
    "actions/0": ACTIONS_ROW,
    "badges/a": b'{"format":1,"earned":{"first_action":1000,"first_stats":1000}}',
    "refused": REFUSED_ROW,
    "team_stats/0": STATS_ROW,
}


def counted() -> Tally:
    """An action, a refused record, and the numbers of a team."""
    tally = BoardRows().tally()
    for topic, key, values in (("actions", None, [action("a"), b"no"]), ("team_stats", b"a", [stats("a", 5, 1)])):
        tally.begin(begun(topic, 0))
        for offset, value in enumerate(values):
            tally.take(JudgedRecord.of(topic, ID, Record(key, value, 0, offset, 1000 + offset)))
    return tally


def test_the_rows_are_written_with_these_bytes() -> None:
    tally = counted()
    assert rows_of(tally, tally.changed) == WRITTEN


def test_rows_that_were_read_are_written_again_with_the_same_bytes() -> None:
    tally = board_with_rows(WRITTEN).tally()
    assert rows_of(tally, WRITTEN) == WRITTEN


def test_a_count_without_the_newer_fields_has_nothing_in_them() -> None:
    board = board_with_rows({"actions/1": b'{"format": 1, "topic_id": "x", "numbers": {}}'})
    count = board.counts[SourcePartition("actions", 1)]
    assert (count.topic_id, count.next_offset, count.missed) == ("x", 0, 0)
    assert (count.actions, count.numbers, count.refused) == ({}, {}, {})


def test_a_field_that_this_version_does_not_know_is_ignored_beside_badges_and_refusals() -> None:
    board = board_with_rows(
        {
            "badges/a": b'{"more": [1], "earned": {"of_another_version": 7}, "format": 1}',
            "refused": REFUSED_ROW.replace(b'"format":1', b'"format":1,"more":{}'),
            "team/b": b'{"registered": 7, "by": "someone"}',
        }
    )
    assert board.earned == {"a": {"of_another_version": 7}}
    assert [each.offset for each in board.listed] == [1]
    assert board.registered == {"b": 7}


def test_a_refusal_for_a_reason_of_another_version_is_listed_as_it_is() -> None:
    board = board_with_rows({"refused": REFUSED_ROW.replace(b"not_json", b"a_new_reason")})
    assert [each.reason for each in board.listed] == ["a_new_reason"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("actions/0", ACTIONS_ROW[:-1]),
        ("actions/0", b"null"),
        ("actions/0", b'{"numbers": {}, "topic_id": "x"}'),
        ("actions/0", b'{"format": 1, "numbers": {}}'),
        ("actions/0", b'{"format": 1, "topic_id": "x"}'),
        # A count must have no part that would be lost when the count is written again.
        ("actions/0", ACTIONS_ROW.replace(b'"missed":0', b'"missed":0,"more":1')),
        ("actions/0", ACTIONS_ROW.replace(b'{"a":1}', b'{"a":"1"}')),
        ("actions/0", ACTIONS_ROW.replace(b'"next_offset":2', b'"next_offset":null')),
        ("actions/first", ACTIONS_ROW),
        ("team_stats/0", STATS_ROW.replace(b',"most_flagged":1', b"")),
        ("team_stats/0", STATS_ROW.replace(b'"most_flagged":1', b'"most_flagged":1,"more":1')),
        ("refused", b'{"format": 1}'),
        ("refused", REFUSED_ROW.replace(b'"offset":1,', b"")),
        ("refused", b"[" * 100_000),
        ("badges/a", b'{"format": 1, "earned": ["connected"]}'),
        ("badges/a", b'{"format": 1, "earned": {"connected": "today"}}'),
        ("badges/a", b'{"format": 2, "earned": {}}'),
        ("badges/a", b"\xff"),
    ],
)
def test_a_damaged_row_is_an_error_that_names_it(key: str, value: bytes) -> None:
    with pytest.raises(LastwordError, match=rf"^board_state, key '{key}', offset 41: .* delete the topic"):
        BoardRows().take(Record(key.encode(), value, 0, 41, 0))


def test_the_error_of_a_damaged_row_names_the_field() -> None:
    damaged = STATS_ROW.replace(b'"processed":5', b'"processed":"5"')
    with pytest.raises(LastwordError, match=r"`\$\.numbers\[\.\.\.\]\.processed`"):
        BoardRows().take(Record(b"team_stats/0", damaged, 0, 41, 0))
