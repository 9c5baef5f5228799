"""The status of the served tables, and whether all are ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import UNSET

from lastword.core.position import Position
from lastword.core.shapes.tables import ReadyAnswer, TableStatus
from lastword.replica.reads import TableReads
from lastword.serve.http.answers import Answer, Refused, json_answer
from lastword.serve.tables.served_table import ServedTable

# The replica's own messages may name folders and addresses, which HTTP clients must not see.
_WHY = {
    "connecting": "the cluster does not answer, or the topic is missing: the server keeps trying",
    "failed": "the table can't recover without help: see the server's log",
    "rebuilding": "the copy on the server's disk was damaged: the server rebuilds it from Kafka",
}


def table_status(table: ServedTable) -> TableStatus:
    """The status of one table; without a number of rows while the table can't be read."""
    state = table.replica.state
    shown = _shown(table)
    progress = state.name in ("catching-up", "rebuilding")
    return TableStatus(
        name=table.name,
        topic=table.replica.topic,
        topic_id=shown.topic_id,
        key=table.key_codec.name,
        value=table.value_codec.name,
        partitions=len(shown.position),
        rows=shown.rows,
        position=str(shown.position),
        log_start=str(shown.log_start),
        topic_log_start=str(shown.topic_log_start),
        lag=table.lag,
        state=state.name,
        why=state.public_why or _WHY.get(state.name, state.why),
        deletes=state.deletes,
        done=state.done if progress else UNSET,
        total=state.total if progress else UNSET,
        seconds_left=state.seconds_left if progress else UNSET,
    )


def readiness(tables: Iterable[ServedTable], others: Iterable[str | None] = ()) -> Answer:
    """200 when everything is ready, else Refused; `others` gives the reason of another part, or None.

    Which table is not ready is answered only where a token may be asked for.
    """
    states = [table.replica.state.name for table in tables]
    ready = states.count("ready")
    if ready < len(states):
        message = f"{ready} of {len(states)} tables are ready"
        raise Refused("not_ready", message, "ask again soon; the status of each is at /tables")
    why = next(filter(None, others), None)
    if why is not None:
        raise Refused("not_ready", why)
    return json_answer(ReadyAnswer())


class _ShownTable(NamedTuple):
    topic_id: str | None = None
    position: Position = Position()
    rows: int | None = None
    log_start: Position = Position()
    topic_log_start: Position = Position()


def _shown(table: ServedTable) -> _ShownTable:
    def found(reads: TableReads) -> _ShownTable:
        return _ShownTable(reads.topic_id, reads.position, len(reads), reads.log_start, reads.topic_log_start)

    try:
        return table.ask(found)
    except Refused:
        return _ShownTable()
