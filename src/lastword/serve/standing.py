"""How the served tables stand: what is listed, and whether it is ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lastword.core.position import Position
from lastword.replica.store import Store
from lastword.serve.answers import Answer, Refused, json_answer
from lastword.serve.tables import ServedTable

# What the replica itself says of these may name folders and addresses, which are not for whoever asks over HTTP.
_WHY = {
    "connecting": "no cluster answers, or the topic is away: it goes on trying",
    "failed": "it can't go on by itself: the server's own output says why",
}


def standing(table: ServedTable) -> dict[str, Any]:
    """What is served under a name, and how far it is; without rows while there is nothing to show."""
    state = table.replica.state
    topic_id, position, rows = _shown(table)
    told: dict[str, Any] = {
        "name": table.name,
        "topic": table.replica.topic,
        "topic_id": topic_id,
        "key": table.key_codec.name,
        "value": table.value_codec.name,
        "partitions": len(position),
        "rows": rows,
        "position": str(position),
        "lag": table.lag,
        "state": state.name,
        "why": _WHY.get(state.name, state.why),
        "deletes": state.deletes,
    }
    if state.name == "catching-up":
        told |= {"done": state.done, "total": state.total, "seconds_left": state.seconds_left}
    return told


def readiness(tables: Iterable[ServedTable], *, board_is_ready: bool = True) -> Answer:
    """200 when all of it is ready, else Refused. Which table is not is told only where a token may be asked for."""
    states = [table.replica.state.name for table in tables]
    ready = states.count("ready")
    if ready < len(states):
        told = f"{ready} of {len(states)} tables are ready"
        raise Refused(503, "not_ready", told, "ask again soon; how each stands is at /tables")
    if not board_is_ready:
        raise Refused(503, "not_ready", "the board is not ready", "ask again soon")
    return json_answer({"ready": True})


def _shown(table: ServedTable) -> tuple[str | None, Position, int | None]:
    def found(store: Store) -> tuple[str, Position, int]:
        return store.topic_id, store.position, len(store)

    try:
        return table.ask(found)
    except Refused:
        return None, Position(), None
