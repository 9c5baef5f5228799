"""The board, counted in the plainest way: the reference for every other way to count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from lastword.core.record import Record
from lastword.teams.board.ranking import actions_of, numbers_of, refused_counts
from lastword.teams.board.tally import Tally


class Recount(NamedTuple):
    actions: dict[str, int]
    numbers: dict[str, tuple[int, int]]
    refused: int


def recount(actions: Iterable[Record], stats: Iterable[Record]) -> Recount:
    """The counts of these records, by rules that are written down here a second time."""
    counted: Counter[str] = Counter()
    newest: dict[str, tuple[int, int]] = {}
    refused = 0
    for record in actions:
        fields = _fields(record.value)
        texts = [fields.get(name) for name in ("customer", "type", "reason", "team")]
        if all(isinstance(text, str) and text for text in texts) and len(fields["team"]) <= 100:
            counted[fields["team"]] += 1
        else:
            refused += 1
    for record in stats:
        team, fields = (record.key or b"").decode(), _fields(record.value)
        processed, flagged = fields.get("processed", -1), fields.get("flagged", -1)
        if record.value is None:
            newest.pop(team, None)
        elif _is_right(fields, team) and 0 <= flagged <= processed:
            newest[team] = (processed, flagged)
        else:
            refused += 1
    return Recount(dict(counted), newest, refused)


def recount_of_tally(tally: Tally) -> Recount:
    """The counts of a tally."""
    numbers = {team: (each.processed, each.flagged) for team, each in numbers_of(tally).items()}
    return Recount(dict(actions_of(tally)), numbers, sum(each.count for each in refused_counts(tally)))


def recount_of_board(board: dict[str, Any]) -> Recount:
    """The counts of a board, as HTTP gives it."""
    teams = board["teams"]
    return Recount(
        {each["team"]: each["actions"] for each in teams if each["actions"]},
        {each["team"]: (each["processed"], each["flagged"]) for each in teams if each["processed"] is not None},
        board["refused"]["total"],
    )


def _is_right(fields: dict[str, Any], team: str) -> bool:
    are_numbers = type(fields.get("processed")) is int and type(fields.get("flagged")) is int
    return are_numbers and fields.get("team") == team and 0 < len(team) <= 100


def _fields(value: bytes | None) -> dict[str, Any]:
    try:
        fields = json.loads(value or b"null")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
