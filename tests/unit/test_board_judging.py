"""What a record of `actions` or `team_stats` must be, and the reason when it is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.core.record import Record
from lastword.teams.board.board_shapes import REASONS, StatsRecord
from lastword.teams.board.judging import Action, Forgotten, Refusal, judged

GOOD = {"customer": "a@example.com", "type": "BAN_CUSTOMER", "reason": "SUSPICIOUS_NAME", "team": "team-1"}
LONG = "x" * 101


def action(value: bytes | None) -> object:
    return judged("actions", Record(None, value, 0, 0, 0))


def stats(key: bytes | None, value: bytes | None) -> object:
    return judged("team_stats", Record(key, value, 0, 0, 0))


def without(*names: str, **changed: object) -> bytes:
    return json.dumps({name: text for name, text in {**GOOD, **changed}.items() if name not in names}).encode()


def told(said: object) -> tuple[str, str | None]:
    assert isinstance(said, Refusal), said
    assert said.reason in REASONS
    assert said.words
    return said.reason, said.team


@pytest.mark.parametrize(
    "value", [without(), without(more="fields are fine"), without(team="é" * 100), b" " + without() + b"\n"]
)
def test_an_action_with_all_four_fields_is_taken(value: bytes) -> None:
    assert isinstance(action(value), Action)


@pytest.mark.parametrize(
    ("value", "reason", "team"),
    [
        (None, "tombstone", None),
        (b"", "not_json", None),
        (b"{", "not_json", None),
        (b"\xff\xfe", "not_json", None),
        (b"NaN", "not_json", None),
        (b'{"team": "\\ud800"}', "not_json", None),
        (b"1" * 5000, "not_json", None),
        (b"[" * 100_000, "not_json", None),
        (b"\x00\x00\x00\x00\x07{}", "not_json", None),
        (b"null", "not_object", None),
        (b'"text"', "not_object", None),
        (b"[]", "not_object", None),
        (b"7", "not_object", None),
        (b"{}", "missing_field", None),
        *((without(name), "missing_field", "team-1") for name in ("customer", "type", "reason")),
        (without("team"), "missing_field", None),
        *((without(**{name: ""}), "empty_field", "team-1") for name in ("customer", "type", "reason")),
        (without(team=""), "empty_field", None),
        *((without(customer=value), "not_text", "team-1") for value in (None, 7, True, ["a"], {"a": 1})),
        (without(team=7), "not_text", None),
        (without(team=LONG), "long_team", None),
    ],
)
def test_an_action_that_is_not_right_is_refused_with_a_reason(value: bytes | None, reason: str, team: str) -> None:
    assert told(action(value)) == (reason, team)


def test_a_refusal_says_which_field_it_is_about() -> None:
    said = action(without("type"))
    assert isinstance(said, Refusal)
    assert said.words == "type is missing"


def test_numbers_of_a_team_are_taken() -> None:
    value = b'{"team": "team-1", "processed": 10, "flagged": 10, "more": null}'
    assert stats(b"team-1", value) == StatsRecord("team-1", 10, 10)
    assert stats(b"team-1", b'{"team": "team-1", "processed": 0, "flagged": 0}') == StatsRecord("team-1", 0, 0)
    assert stats(b"team-1", None) == Forgotten("team-1")


@pytest.mark.parametrize(
    ("key", "value", "reason", "team"),
    [
        (None, None, "key_not_team", None),
        (b"", None, "key_not_team", None),
        (b"\xff", None, "key_not_team", None),
        (LONG.encode(), None, "key_not_team", None),
        (b"team-1", b"", "not_json", "team-1"),
        (b"team-1", b"null", "not_object", "team-1"),
        (b"team-1", b"7", "not_object", "team-1"),
        (b"team-1", b"{}", "missing_field", "team-1"),
        (b"team-1", b'{"team": 1, "processed": 1, "flagged": 1}', "not_text", "team-1"),
        (b"team-1", b'{"team": "", "processed": 1, "flagged": 1}', "empty_field", "team-1"),
        (b"team-2", b'{"team": "team-1", "processed": 1, "flagged": 1}', "key_not_team", "team-1"),
        (None, b'{"team": "team-1", "processed": 1, "flagged": 1}', "key_not_team", "team-1"),
        (b"\xff", b'{"team": "team-1", "processed": 1, "flagged": 1}', "key_not_team", "team-1"),
        (b"team-1 ", b'{"team": "team-1", "processed": 1, "flagged": 1}', "key_not_team", "team-1"),
        (b"team-1", b'{"team": "team-1", "flagged": 1}', "missing_field", "team-1"),
        (b"team-1", b'{"team": "team-1", "processed": 1}', "missing_field", "team-1"),
        *(
            (b"team-1", b'{"team": "team-1", "processed": %b, "flagged": 0}' % number, "not_count", "team-1")
            for number in (b"-1", b"1.5", b"2.0", b"1e3", b"true", b"null", b'"7"', b"[]", b"9223372036854775808")
        ),
        (b"team-1", b'{"team": "team-1", "processed": 5, "flagged": false}', "not_count", "team-1"),
        (b"team-1", b'{"team": "team-1", "processed": 1, "flagged": 2}', "flagged_over_processed", "team-1"),
        (LONG.encode(), b'{"team": "%b", "processed": 1, "flagged": 1}' % LONG.encode(), "long_team", None),
    ],
)
def test_numbers_that_are_not_right_are_refused_with_a_reason(
    key: bytes | None, value: bytes | None, reason: str, team: str | None
) -> None:
    assert told(stats(key, value)) == (reason, team)


@given(st.sampled_from(["actions", "team_stats"]), st.none() | st.binary(), st.none() | st.binary())
def test_any_bytes_are_judged(topic: str, key: bytes | None, value: bytes | None) -> None:
    assert isinstance(judged(topic, Record(key, value, 0, 0, 0)), Refusal | Forgotten)
