"""Measures a replica: the rate of a rebuild beside the alternatives, the time of a restart, and the latency."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.alternatives.environment import python_of_alternatives
from benchmarks.alternatives.kafka_streams import compiled_streams
from benchmarks.input.topics import FilledTopic, distinct_topic, updated_topic
from benchmarks.measuring.commands import python
from benchmarks.measuring.figures import Result
from benchmarks.measuring.plan import LeftOut, Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from benchmarks.replica.contenders import Contenders
from benchmarks.replica.report import (
    BARE_LOOP,
    KAFKA_STREAMS,
    OURS,
    OURS_WITH_LITTLE_MEMORY,
    WRITE_BATCHES,
    ReplicaMeasurements,
    replica_result,
)
from lastword.kafka.client.connection import Connection

_T = TypeVar("_T")

MEMORY_MB = 1024
LITTLE_MEMORY_MB = 256
RATES = (10, 10_000)
# kafka-python and Quix Streams would take minutes for all records: they get one in so many.
PART = 10


def bench_replica(plan: Plan) -> Result:
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        bench = _ReplicaBenchmark(plan=plan, contenders=Contenders(home=Path(folder)))
        # Everything is fetched before the first measurement.
        streams = bench.unless_left_out(lambda: compiled_streams(plan, Path(folder) / "classes"))
        interpreter = bench.unless_left_out(lambda: python_of_alternatives(plan))
        with plan.cluster() as connection:
            bench.measure_updates(connection, streams)
            if interpreter is not None:
                bench.measure_slow_alternatives(connection, interpreter)
            bench.measure_distinct(connection, streams)
    return replica_result(plan, bench.measured, bench.left_out)


@dataclass(frozen=True, kw_only=True)
class _ReplicaBenchmark:
    plan: Plan
    contenders: Contenders
    measured: ReplicaMeasurements = field(default_factory=ReplicaMeasurements)
    left_out: list[str] = field(default_factory=list)

    def unless_left_out(self, prepare: Callable[[], _T]) -> _T | None:
        try:
            return prepare()
        except LeftOut as reason:
            self.left_out.append(str(reason))
            return None

    def measure_updates(self, connection: Connection, streams: list[str] | None) -> None:
        self.plan.report(f"replica: filling a topic with {self.plan.records:,} updates")
        with updated_topic(connection, self.plan.records) as filled:
            runs = interleaved(self.plan, "replica", self._rebuilds(filled, streams))
            self.measured.add_rebuilds(filled.records, runs)
            restart = {"restart": lambda: self.contenders.reopened(filled, MEMORY_MB)}
            self.measured.restarts.extend(interleaved(self.plan, "replica", restart)["restart"])
            self._measure_latency(filled)

    def _rebuilds(self, filled: FilledTopic, streams: list[str] | None) -> dict[str, Callable[[], Run]]:
        steps: dict[str, Callable[[], Run]] = {
            OURS_WITH_LITTLE_MEMORY: lambda: self.contenders.lastword(filled, LITTLE_MEMORY_MB),
            BARE_LOOP: lambda: self.contenders.bare_loop(filled),
            WRITE_BATCHES: lambda: self.contenders.write_batches(filled),
        }
        if streams is not None:
            steps[KAFKA_STREAMS] = lambda: self.contenders.kafka_streams(filled, streams)
        # Last: the restarts open its folder.
        return {**steps, OURS: lambda: self.contenders.lastword(filled, MEMORY_MB)}

    def _measure_latency(self, filled: FilledTopic) -> None:
        """Must be the last measurement on the topic, because it writes to the topic."""
        seconds = min(5, max(1, filled.records // 500_000))
        servers, folder = filled.connection.bootstrap_servers, self.contenders.replica_folder(filled)
        for number in range(self.plan.rounds):
            for rate in RATES:
                self.plan.report(f"replica: latency at {rate:,} writes/s, round {number + 1} of {self.plan.rounds}")
                words = (servers, filled.topic, str(folder), str(rate), str(seconds))
                done = run(python("replica.latency", *words), self.contenders.home)
                self.measured.latencies.setdefault(rate, []).append(done)

    def measure_slow_alternatives(self, connection: Connection, interpreter: Path) -> None:
        records = max(1, self.plan.records // PART)
        self.plan.report(f"replica: filling a topic with {records:,} updates")
        with updated_topic(connection, records) as filled:
            for who, rebuild in (
                ("kafka-python", self.contenders.kafka_python),
                ("Quix Streams", self.contenders.quix),
            ):
                self.plan.report(f"replica: {who}, its only round")
                self.measured.add_rebuilds(records, {who: [rebuild(filled, interpreter)]})

    def measure_distinct(self, connection: Connection, streams: list[str] | None) -> None:
        self.plan.report(f"replica: filling a topic with {self.plan.records:,} rows with distinct keys")
        with distinct_topic(connection, self.plan.records) as filled:
            runs = interleaved(self.plan, "replica, distinct keys", self._rebuilds(filled, streams))
            self.measured.add_distinct(filled.records, runs)
