"""How a pipeline stands: how far it is, how fast, how late, and what has happened to it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.counter_tables import sums
from lastword.pipeline.running.progress import PartitionProgress, position_of

# The rate is taken over so many seconds, and so many events are told.
_RATE_S = 10.0
_EVENTS = 10


class PipelineStatus:
    """Written by the batches of a run and read by whoever shows it; from any thread."""

    def __init__(self, plan: Pipeline) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._progress: dict[int, PartitionProgress] = {}
        self._started_ms = now_ms()
        self._batches: deque[tuple[float, int]] = deque()
        self._events: deque[dict[str, Any]] = deque(maxlen=_EVENTS)
        self._last: dict[str, Any] = {"tasks": 0, "records": 0, "seconds": 0.0, "latency_ms": None}
        self.records = 0

    def happened(self, what: str) -> None:
        with self._lock:
            self._events.append({"at": now_ms(), "what": what})

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
        """A batch of so many tasks and records is done; `newest_ms` is the time of its newest record."""
        with self._lock:
            self._progress = dict(progress)
            self.records += records
            self._batches.append((time.monotonic(), records))
            latency_ms = None if newest_ms is None else now_ms() - newest_ms
            self._last = {"tasks": tasks, "records": records, "seconds": round(seconds, 3), "latency_ms": latency_ms}

    @property
    def position(self) -> Position:
        with self._lock:
            return position_of(self._progress)

    def row(self, ends: Position | None) -> dict[str, Any]:
        """As JSON shows it; `ends` is where the source ends, None if that is not known."""
        with self._lock:
            progress = self._progress.values()
            position = position_of(self._progress)
            lag = None if ends is None else sum(max(0, end - position.get(p, end)) for p, end in ends.items())
            return {
                "app": self._plan.app,
                "at": now_ms(),
                "started": self._started_ms,
                "generation": max((each.generation for each in progress), default=0),
                "owner": next((each.owner for each in progress), ""),
                "source": self._plan.source.topic,
                # Each once, in the order of the rules.
                "emits": [*dict.fromkeys(rule.to for rule in self._plan.rules)],
                "position": str(position),
                "lag": lag,
                "rate": round(self._rate(), 1),
                "valid": sum(each.valid for each in progress),
                "rejected": sum(each.rejected for each in progress),
                "tables": {
                    table.topic: {rule.name: sums(table, rule.name, self._progress) for rule in self._plan.rules}
                    for table in self._plan.tables
                },
                # Of all batches there ever were, also before this start: the last one may be small.
                "most_tasks": max((each.most_tasks for each in progress), default=0),
                "batch": dict(self._last),
                "events": list(self._events),
            }

    def _rate(self) -> float:
        now = time.monotonic()
        while self._batches and self._batches[0][0] < now - _RATE_S:
            self._batches.popleft()
        return sum(records for _, records in self._batches) / _RATE_S
