"""The pipelines that a server can see: each tells how it stands in a row of its status table, if that is served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lastword.serve.answers import Refused
from lastword.serve.tables import ServedTable

# A status comes every two seconds.
_SILENT_MS = 10_000
# A table of statuses has a row for each pipeline; one with more rows is not looked through.
_MOST_ROWS = 100


class _Status(msgspec.Struct):
    """What the row of a pipeline has, as it writes it; those of before `emits` lack that."""

    app: str
    at: int
    started: int
    generation: int
    source: str
    lag: int | None
    rate: float
    valid: int
    rejected: int
    tables: dict[str, Any]
    batch: dict[str, Any]
    events: list[Any]
    emits: list[str] | None = None


def pipelines(tables: Iterable[ServedTable], now_ms: int) -> list[dict[str, Any]]:
    """How each pipeline stands whose status table is served."""
    return [_told(table.name, status, now_ms) for table in tables for status in _statuses(table)]


def _statuses(table: ServedTable) -> Iterator[_Status]:
    if table.value_codec.name != "json":
        return
    try:
        values = table.ask(lambda store: [row.value for row in store.scan()] if len(store) <= _MOST_ROWS else [])
    except Refused:
        return
    for value in values:
        try:
            yield msgspec.json.decode(value or b"", type=_Status)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # a table of something else


def _told(table: str, status: _Status, now_ms: int) -> dict[str, Any]:
    return {
        "app": status.app,
        "table": table,
        "state": "running" if now_ms - status.at < _SILENT_MS else "silent",
        "at": status.at,
        "started": status.started,
        "generation": status.generation,
        "source": status.source,
        "emits": status.emits,
        "keeps": [*status.tables],
        "rate": status.rate,
        "lag": status.lag,
        "valid": status.valid,
        "rejected": status.rejected,
        "batch": status.batch,
        "events": status.events,
    }
