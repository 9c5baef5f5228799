"""Measures the pipeline: throughput beside the alternatives, latency and its parts, and recovery."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.alternatives.environment import alternative_in, python_of_alternatives
from benchmarks.http.servers import table_serving
from benchmarks.measuring.background import last_line, running
from benchmarks.measuring.commands import python
from benchmarks.measuring.figures import Result
from benchmarks.measuring.plan import LeftOut, Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from benchmarks.pipeline.costs import task_costs_ms
from benchmarks.pipeline.latency import STATS
from benchmarks.pipeline.recovery import recoveries
from benchmarks.pipeline.report import CONFLUENT, KAFKA_PYTHON, OURS, SCAN, SINK, PipelineMeasurements, pipeline_result
from benchmarks.pipeline.topics import (
    PARTITIONS,
    RATE,
    Outcome,
    PipelineTopics,
    fresh_topics,
    recounted,
    refuse_other,
    users_topic,
    write_users,
    written,
)
from lastword.kafka.client.connection import Connection

_ALL_CORES = "local[*,4]"
_A_SLOT_EACH = f"local[{PARTITIONS},4]"


def bench_pipeline(plan: Plan) -> Result:
    seconds = min(30, max(5, plan.records // 30_000))
    left_out: list[str] = []
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        try:
            interpreter = python_of_alternatives(plan)
        except LeftOut as reason:
            left_out.append(str(reason))
            interpreter = None
        with plan.cluster() as connection:
            bench = _PipelineBenchmark(plan=plan, connection=connection, home=Path(folder), interpreter=interpreter)
            bench.measure_throughput()
            bench.measure_latency(seconds)
            bench.measure_recovery()
    return pipeline_result(plan, bench.measured, left_out, seconds)


@dataclass(frozen=True, kw_only=True)
class _PipelineBenchmark:
    plan: Plan
    connection: Connection
    home: Path
    interpreter: Path | None
    measured: PipelineMeasurements = field(default_factory=PipelineMeasurements)

    def measure_throughput(self) -> None:
        with users_topic(self.connection) as users:
            self.plan.report(f"pipeline: writing and counting {self.plan.records:,} users")
            write_users(self.connection, users, self.plan.records, self.home)
            expected = recounted(self.connection, users)
            contenders: dict[str, Callable[[PipelineTopics], list[str]]] = {OURS: self._ours}
            if self.interpreter is not None:
                contenders |= {who: partial(self._loop, self.interpreter, who) for who in (KAFKA_PYTHON, CONFLUENT)}
            contenders |= {SINK: partial(self._spark, "sink"), SCAN: partial(self._spark, "scan")}
            steps = {who: partial(self._run, who, command, users, expected) for who, command in contenders.items()}
            self.measured.runs.update(interleaved(self.plan, "pipeline", steps))

    def _run(self, who: str, command: Callable[[PipelineTopics], list[str]], users: str, expected: Outcome) -> Run:
        with fresh_topics(self.connection, users) as topics:
            done = run(command(topics), self.home)
            if who != SCAN:
                refuse_other(who, written(topics), expected)
        return done

    def _ours(self, topics: PipelineTopics) -> list[str]:
        return self._process(topics, _ALL_CORES, self.plan.records)

    def _process(self, topics: PipelineTopics, master: str, users: int) -> list[str]:
        address = (self.connection.bootstrap_servers, str(self.plan.jars))
        return python("pipeline.process", str(topics.file(self.home)), *address, master, str(users))

    def _loop(self, interpreter: Path, client: str, topics: PipelineTopics) -> list[str]:
        names = (topics.users, topics.actions, topics.stats)
        arguments = (client, self.connection.bootstrap_servers, *names, str(self.plan.records))
        return alternative_in(interpreter, "rules_loop", *arguments)

    def _spark(self, what: str, topics: PipelineTopics) -> list[str]:
        address = (self.connection.bootstrap_servers, str(self.plan.jars))
        folder = self.home / f"checkpoint-{topics.app}"
        return python("pipeline.spark_alone", what, str(topics.file(self.home)), *address, str(folder))

    def measure_latency(self, seconds: int) -> None:
        output = self.home / "pipeline.log"
        with ExitStack() as stack:
            users = stack.enter_context(users_topic(self.connection))
            topics = stack.enter_context(fresh_topics(self.connection, users))
            self.measured.costs_ms.update(task_costs_ms(topics))
            server = stack.enter_context(table_serving(self.connection, STATS, topics.stats, self.home))
            names = (self.connection.bootstrap_servers, users, topics.actions)
            numbers = (server.port, RATE, seconds)
            command = python("pipeline.latency", *names, *map(str, numbers))
            with running(self._process(topics, _A_SLOT_EACH, 0), self.home, output):
                steps = {f"{RATE} users/s": lambda: run(command, self.home)}
                runs = interleaved(self.plan, "pipeline", steps)
            self.measured.latency.extend(runs[f"{RATE} users/s"])
            self.measured.batches_ms.extend(json.loads(last_line(output))["batches_ms"])

    def measure_recovery(self) -> None:
        with users_topic(self.connection) as users, fresh_topics(self.connection, users) as topics:
            self.measured.recoveries.extend(recoveries(self.plan, topics, self.home, _A_SLOT_EACH))
