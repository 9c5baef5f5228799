"""The pipelines that a server can see: those whose status table it serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lastword.core.record import Record
from lastword.core.shapes.cluster import PipelineSummary
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.serve.http.answers import Refused
from lastword.serve.tables.served_table import ServedTable

# A pipeline writes its status every two seconds.
_SILENT_S = 10.0
# A status table has one row for each pipeline; a table with more rows than this is not read.
_MOST_ROWS = 100

# A row by its table and key, and its partition and offset.
_Named = tuple[str, bytes | None]
_Place = tuple[int, int]


class Pipelines:
    """The status of each pipeline whose status table is served; asked by one thread at a time."""

    def __init__(self, tables: Iterable[ServedTable]) -> None:
        self._tables = tables
        self._age = Age()

    def summaries(self, now_ms: int, now_s: float) -> list[PipelineSummary]:
        found = [(table.name, row, status) for table in self._tables for row, status in _statuses(table)]
        ages_s = self._age.of_all(
            {(name, row.key): ((row.partition, row.offset), status.at) for name, row, status in found}, now_ms, now_s
        )
        return [_summary(name, status, ages_s[name, row.key]) for name, row, status in found]


class Age:
    """The age of rows by this server's clock, because the clock of their writer may be ahead or behind."""

    def __init__(self) -> None:
        # When this server first saw each row at its offset.
        self._since: dict[_Named, tuple[_Place, float]] = {}

    def of_all(self, rows: Mapping[_Named, tuple[_Place, int]], now_ms: int, now_s: float) -> dict[_Named, float]:
        """The ages in seconds of rows with their writers' times; other rows are forgotten."""
        since = {}
        for named, (place, at) in rows.items():
            known = self._since.get(named)
            if known is None:
                # Seen for the first time: the age comes from the writer's time, and is never negative.
                known = place, now_s - max(0, now_ms - at) / 1000
            since[named] = known if known[0] == place else (place, now_s)
        self._since = since
        return {named: now_s - at_s for named, (_, at_s) in since.items()}


def _statuses(table: ServedTable) -> Iterator[tuple[Record, PipelineStatus]]:
    if table.value_codec.name != "json":
        return
    try:
        rows = table.ask(lambda reads: [row.record() for row in reads.rows()] if len(reads) <= _MOST_ROWS else [])
    except Refused:
        return
    for row in rows:
        # A status table may have other rows too.
        if (status := PipelineStatus.from_json(row.value)) is not None:
            yield row, status


def _summary(table: str, status: PipelineStatus, age_s: float) -> PipelineSummary:
    return PipelineSummary(
        app=status.app,
        table=table,
        state="running" if age_s < _SILENT_S else "silent",
        at=status.at,
        started=status.started,
        generation=status.generation,
        source=status.source,
        emits=status.emits,
        keeps=[*status.tables],
        rate=status.rate,
        lag=status.lag,
        valid=status.valid,
        rejected=status.rejected,
        batch=status.batch,
        events=status.events,
    )
