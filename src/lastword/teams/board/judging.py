"""Judges every record that teams write to `actions` or `team_stats`: it counts, or it is refused with a reason."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from lastword.core.codecs import codec_named
from lastword.core.errors import DecodeError
from lastword.core.record import Record
from lastword.teams.board.board_shapes import MOST_LETTERS, REASONS, ActionRecord, StatsRecord
from lastword.teams.board.board_topics import ACTIONS

_json = codec_named("json")


class Action(NamedTuple):
    team: str


class Forgotten(NamedTuple):
    """A tombstone of `team_stats`: the team's numbers are gone."""

    team: str


class Refusal(NamedTuple):
    reason: str  # one of REASONS
    words: str
    team: str | None  # None where it is unknown


Judged = Action | StatsRecord | Forgotten | Refusal


def judged(topic: str, record: Record) -> Judged:
    """The meaning of a record of one of the two topics, or the reason why it is refused."""
    return _action(record) if topic == ACTIONS else _stats(record)


def is_team_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MOST_LETTERS


def refusal(reason: str, team: str | None, words: str | None = None) -> Refusal:
    return Refusal(reason, words or REASONS[reason], team)


def _action(record: Record) -> Judged:
    if record.value is None:
        return refusal("tombstone", None)
    fields = _object(record.value, None)
    if isinstance(fields, Refusal):
        return fields
    try:
        return Action(msgspec.convert(fields, ActionRecord).team)
    except msgspec.ValidationError:
        return next(filter(None, (_text_refusal(fields, name) for name in ActionRecord.__struct_fields__)))


def _stats(record: Record) -> Judged:
    key = _text(record.key)
    by_key = key if is_team_name(key) else None
    if record.value is None:
        # Only the key of a tombstone names the team.
        return refusal("key_not_team", None) if by_key is None else Forgotten(by_key)
    fields = _object(record.value, by_key)
    if isinstance(fields, Refusal):
        return fields
    try:
        stats = msgspec.convert(fields, StatsRecord)
    except msgspec.ValidationError:
        return _stats_refusal(fields, key, by_key)
    if key != stats.team:
        return refusal("key_not_team", stats.team)
    return refusal("flagged_over_processed", stats.team) if stats.flagged > stats.processed else stats


def _stats_refusal(fields: dict[str, Any], key: str | None, by_key: str | None) -> Refusal:
    """Why the fields are not a StatsRecord; a key that is not the team's name comes before the counters."""
    wrong = _text_refusal(fields, "team", by_key)
    if wrong is not None:
        return wrong
    team = fields["team"]
    if key != team:
        return refusal("key_not_team", team)
    name = next(name for name in ("processed", "flagged") if not _is_count(fields.get(name)))
    if name not in fields:
        return refusal("missing_field", team, f"{name} is missing")
    return refusal("not_count", team, f"{name} is not a whole number from 0 on")


def _object(value: bytes, team: str | None) -> dict[str, Any] | Refusal:
    try:
        fields = _json.decode(value)
    except (DecodeError, ValueError):
        # A ValueError comes from a number of thousands of digits.
        return refusal("not_json", team)
    return fields if isinstance(fields, dict) else refusal("not_object", team)


def _text_refusal(fields: dict[str, Any], name: str, otherwise: str | None = None) -> Refusal | None:
    """The refusal of a field that must be text, or None; `otherwise` is the team if the fields name none."""
    named = fields.get("team")
    team = named if is_team_name(named) else otherwise
    if name not in fields:
        return refusal("missing_field", team, f"{name} is missing")
    text = fields[name]
    if not isinstance(text, str):
        return refusal("not_text", team, f"{name} is not text")
    if not text:
        return refusal("empty_field", team, f"{name} is empty")
    return refusal("long_team", team) if name == "team" and len(text) > MOST_LETTERS else None


def _is_count(number: object) -> bool:
    # In Python True is an int, in JSON it is not a number.
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
