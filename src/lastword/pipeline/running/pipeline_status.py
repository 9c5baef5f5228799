"""The status of a run: how far it is, how fast, how late, and what has happened to it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.core.rates import EventRate
from lastword.core.shapes.pipeline_status import BatchStatus, PipelineEvent, PipelineStatus
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.counter_tables import sums
from lastword.pipeline.running.progress import PartitionProgress, position_of

# A status has the last events, no more than this.
_EVENTS = 10


class RunStatus:
    """Collects what the batches of a run report, and makes the status row of it; for any thread."""

    def __init__(self, plan: Pipeline) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._progress: dict[int, PartitionProgress] = {}
        self._started_ms = now_ms()
        self._rate = EventRate()
        self._events: deque[PipelineEvent] = deque(maxlen=_EVENTS)
        self._last = BatchStatus(tasks=0, records=0, seconds=0.0, latency_ms=None)
        self.records = 0

    def happened(self, what: str) -> None:
        with self._lock:
            self._events.append(PipelineEvent(at=now_ms(), what=what))

    def taken(self, progress: Mapping[int, PartitionProgress]) -> None:
        with self._lock:
            self._progress = dict(progress)

    def committed(
        self,
        progress: Mapping[int, PartitionProgress],
        *,
        tasks: int,
        records: int,
        newest_ms: int | None,
        seconds: float,
    ) -> None:
        """Counts a committed batch; `newest_ms` is the timestamp of its newest record."""
        with self._lock:
            self._progress = dict(progress)
            self.records += records
            self._rate.add(time.monotonic(), records)
            latency_ms = None if newest_ms is None else now_ms() - newest_ms
            self._last = BatchStatus(tasks=tasks, records=records, seconds=round(seconds, 3), latency_ms=latency_ms)

    @property
    def position(self) -> Position:
        with self._lock:
            return position_of(self._progress)

    def row(self, ends: Position | None) -> PipelineStatus:
        """The status row of now; `ends` is where the source ends, None if that is not known."""
        with self._lock:
            progress = self._progress.values()
            position = position_of(self._progress)
            lag = None if ends is None else sum(max(0, end - position.get(p, end)) for p, end in ends.items())
            return PipelineStatus(
                app=self._plan.app,
                at=now_ms(),
                started=self._started_ms,
                generation=max((each.generation for each in progress), default=0),
                owner=next((each.owner for each in progress), ""),
                source=self._plan.source.topic,
                emits=[*dict.fromkeys(rule.to for rule in self._plan.rules)],
                position=str(position),
                lag=lag,
                rate=self._rate.per_s(time.monotonic()),
                valid=sum(each.valid for each in progress),
                rejected=sum(each.rejected for each in progress),
                tables={
                    table.topic: {rule.name: sums(table, rule.name, self._progress) for rule in self._plan.rules}
                    for table in self._plan.tables
                },
                most_tasks=max((each.most_tasks for each in progress), default=0),
                batch=self._last,
                events=list(self._events),
            )
