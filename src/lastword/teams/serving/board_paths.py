"""The board in the OpenAPI document: the content of its stream, and examples of its answers."""

from __future__ import annotations

from lastword.serve.openapi.operations import refusal_schema, stream_content
from lastword.serve.openapi.schemas import Node, ref
from lastword.teams.board.board_shapes import (
    REASONS,
    SYMBOLS,
    Badge,
    BoardAnswer,
    RefusedAnswer,
    RefusedCount,
    RefusedTotal,
    Team,
)

_AT = 1_767_225_600_000
_TEAM = Team(
    rank=1,
    team="team-1",
    kind="inside",
    badges=[Badge("connected", SYMBOLS["connected"], 1_767_225_000_000)],
    lag=12,
    actions=1042,
    processed=10_321,
    flagged=1042,
    actions_per_s=5.1,
    processed_per_s=50.2,
    reset=False,
    refused=1,
)
EXAMPLES = (
    BoardAnswer(
        at=_AT,
        state="ready",
        written=1_767_225_599_500,
        missed=0,
        refused=RefusedTotal(1, {"key_not_team": 1}),
        teams=[_TEAM],
    ),
    RefusedAnswer(_AT, [RefusedCount("team-1", "key_not_team", REASONS["key_not_team"], 1)], []),
)
STREAM_CONTENT: Node = stream_content(
    {"board": ref(BoardAnswer.__name__), "cut": refusal_schema(("stopping",))},
    "The whole board, at once and whenever it has changed; at most one a second.",
)
