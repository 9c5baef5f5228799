"""The board in the OpenAPI document."""

from __future__ import annotations

from lastword.serve.openapi.operations import JSON, refusal_schema, stream_content
from lastword.serve.openapi.schemas import COUNT, TIME, Node, closed, ref
from lastword.teams.board.badges import SYMBOLS
from lastword.teams.board.judging import MOST_LETTERS, REASONS
from lastword.teams.board.tally import MOST_LISTED, MOST_TEAMS

_NAME: Node = {"type": "string", "minLength": 1, "maxLength": MOST_LETTERS}
_REASON: Node = {"enum": list(REASONS)}
_RATE: Node = {"type": ["number", "null"], "minimum": 0, "description": "Over the last ten seconds."}
_EXAMPLE: Node = {
    "at": 1_767_225_600_000,
    "state": "ready",
    "written": 1_767_225_599_500,
    "missed": 0,
    "refused": {"total": 1, "reasons": {"key_not_team": 1}},
    "teams": [
        {
            "rank": 1,
            "team": "team-1",
            "kind": "inside",
            "badges": [{"name": "connected", "symbol": "🔌", "earned": 1_767_225_000_000}],
            "lag": 12,
            "actions": 1042,
            "processed": 10_321,
            "flagged": 1042,
            "actions_per_s": 5.1,
            "processed_per_s": 50.2,
            "reset": False,
            "refused": 1,
        }
    ],
}


_REFUSED: Node = {
    "at": _EXAMPLE["at"],
    "counts": [{"team": "team-1", "reason": "key_not_team", "meaning": REASONS["key_not_team"], "count": 1}],
    "last": [],
}
BOARD_CONTENT: Node = {JSON: {"schema": ref("board"), "example": _EXAMPLE}}
REFUSED_CONTENT: Node = {JSON: {"schema": ref("board_refused"), "example": _REFUSED}}
STREAM_CONTENT: Node = stream_content(
    {"board": ref("board"), "cut": refusal_schema(("stopping",))},
    "The whole board, at once and whenever it has changed; at most one a second.",
)


def board_schemas() -> Node:
    optional_count = {**COUNT, "type": ["integer", "null"]}
    badge = closed({"name": {"enum": list(SYMBOLS)}, "symbol": {"enum": list(SYMBOLS.values())}, "earned": TIME})
    team = closed(
        {
            "rank": {**COUNT, "minimum": 1},
            "team": _NAME,
            "kind": {"enum": ["inside", "outside"]},
            "badges": {"type": "array", "items": badge, "maxItems": len(SYMBOLS)},
            "lag": {**optional_count, "description": "null while it is unknown."},
            "actions": {**COUNT, "description": "Valid actions, exactly."},
            "processed": {**optional_count, "description": "null while the team has written no numbers."},
            "flagged": optional_count,
            "actions_per_s": _RATE,
            "processed_per_s": _RATE,
            "reset": {"type": "boolean", "description": "A counter went back and has not reached its old value again."},
            "refused": COUNT,
        }
    )
    return {
        "board": closed(
            {
                "at": TIME,
                "state": {"enum": ["ready", "connecting"]},
                "written": {**TIME, "type": ["integer", "null"], "description": "When board_state was written, in ms."},
                "missed": {**COUNT, "description": "Offsets that expired before they were counted."},
                "refused": closed(
                    {
                        "total": COUNT,
                        "reasons": {"type": "object", "propertyNames": _REASON, "additionalProperties": COUNT},
                    }
                ),
                "teams": {"type": "array", "items": team, "maxItems": MOST_TEAMS},
            }
        ),
        "board_refused": closed({"at": TIME, "counts": _counts(), "last": _last()}),
    }


def _counts() -> Node:
    team = {
        **_NAME,
        "type": ["string", "null"],
        "description": "null where the team is unknown, or after too many names.",
    }
    count = closed({"team": team, "reason": _REASON, "meaning": {"type": "string"}, "count": COUNT})
    return {"type": "array", "items": count}


def _last() -> Node:
    listed = closed(
        {
            "topic": {"type": "string"},
            "partition": COUNT,
            "offset": COUNT,
            "time": TIME,
            "team": {**_NAME, "type": ["string", "null"]},
            "reason": _REASON,
            "words": {"type": "string"},
            "excerpt": {"type": ["string", "null"], "description": "The beginning of the value; null for none."},
        }
    )
    return {"type": "array", "items": listed, "maxItems": MOST_LISTED, "description": "The newest first."}
