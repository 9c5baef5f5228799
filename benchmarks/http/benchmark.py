"""Measures HTTP: point reads beside the alternatives, reads while records are applied, freshness, change readers."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.alternatives.environment import python_of_alternatives
from benchmarks.http.change_readers import READERS
from benchmarks.http.report import (
    APPLIED_PER_SECOND,
    CHANGES_PER_SECOND,
    FASTAPI,
    FRESHNESS_RATES,
    LOADS,
    NGINX,
    OURS,
    HttpMeasurements,
    LoadWhileApplying,
    http_result,
)
from benchmarks.http.servers import HttpProcess, fastapi_serving, lastword_serving, nginx_serving
from benchmarks.http.wrk import Wrk, found_wrk
from benchmarks.input.paced_writer import Pace
from benchmarks.input.topics import FilledTopic, distinct_topic
from benchmarks.measuring.commands import environment, python
from benchmarks.measuring.figures import Result
from benchmarks.measuring.plan import LeftOut, Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from lastword.core.errors import LastwordError
from lastword.core.position import Position

_PATIENCE_SECONDS = 60
# Records are written for so much longer than the load lasts.
_LEAD_SECONDS = 2
_BURST_MS = 4


def bench_http(plan: Plan) -> Result:
    seconds = min(8, max(1, plan.records // 50_000))
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder, ExitStack() as stack:
        home = Path(folder)
        wrk = found_wrk(home, seconds)
        bench = _HttpBenchmark(plan=plan, home=home, wrk=wrk)
        # Everything is fetched before the first measurement.
        interpreter = bench.unless_left_out(lambda: python_of_alternatives(plan))
        connection = stack.enter_context(plan.cluster())
        plan.report(f"http: filling a topic with {plan.records:,} rows")
        filled = stack.enter_context(distinct_topic(connection, plan.records))
        ours = stack.enter_context(lastword_serving(filled, home))
        bench.measure_alternatives(ours, filled, interpreter)
        bench.measure_while_applying(ours, filled)
        bench.measure_freshness(ours, filled)
        bench.measure_changes(ours, filled)
    return http_result(plan, bench.measured, bench.left_out, seconds)


@dataclass(frozen=True, kw_only=True)
class _HttpBenchmark:
    plan: Plan
    home: Path
    wrk: Wrk
    measured: HttpMeasurements = field(default_factory=HttpMeasurements)
    left_out: list[str] = field(default_factory=list)

    def unless_left_out(self, prepare: Callable[[], Path]) -> Path | None:
        try:
            return prepare()
        except LeftOut as reason:
            self.left_out.append(str(reason))
            return None

    def measure_alternatives(self, ours: HttpProcess, filled: FilledTopic, interpreter: Path | None) -> None:
        """All servers run the whole time; a server that is not asked is idle."""
        with ExitStack() as stack:
            servers = {OURS: ours}
            if interpreter is not None:
                servers[FASTAPI] = stack.enter_context(fastapi_serving(filled, self.home, interpreter))
            try:
                servers[NGINX] = stack.enter_context(nginx_serving(filled, self.home))
            except LeftOut as reason:
                self.left_out.append(str(reason))
            steps = {who: partial(self.wrk.ask, server) for who, server in servers.items()}
            self.measured.reads.update(interleaved(self.plan, "http", steps))

    def measure_while_applying(self, ours: HttpProcess, filled: FilledTopic) -> None:
        for load, pause_ms in LOADS.items():
            steps = {
                "at rest": partial(self._at_rest, ours, pause_ms),
                "applying": partial(self._applying, ours, filled, pause_ms),
            }
            runs = interleaved(self.plan, f"http, {load}", steps)
            self.measured.loads[load] = runs["at rest"], runs["applying"]

    def _at_rest(self, ours: HttpProcess, pause_ms: int) -> LoadWhileApplying:
        return self._load(ours, pause_ms)

    def _applying(self, ours: HttpProcess, filled: FilledTopic, pause_ms: int) -> LoadWhileApplying:
        """The load starts after the first record is applied and ends before the last. Then waits for all records."""
        # In bursts: a writer of single records, with its broker, would use both cores.
        seconds = self.wrk.seconds + _LEAD_SECONDS
        pace = Pace(per_second=APPLIED_PER_SECOND, seconds=seconds, keys=filled.rows, burst_ms=_BURST_MS)
        command, before = pace.writer(*filled.address, "applied-"), _offsets_of(ours)
        with subprocess.Popen(command, env=environment(self.home), stdout=subprocess.PIPE) as writer:
            try:
                _await(lambda: _offsets_of(ours) > before, "the first record was not applied")
                done = self._load(ours, pause_ms)
                writer.communicate(timeout=_PATIENCE_SECONDS)
            except BaseException:
                writer.kill()
                raise
        if writer.returncode:
            raise LastwordError("benchmark: the writer failed: see its error above")
        _await(lambda: _offsets_of(ours) >= before + pace.records, "not every record was applied")
        return done

    def _load(self, ours: HttpProcess, pause_ms: int) -> LoadWhileApplying:
        before, began = _offsets_of(ours), time.monotonic()
        load = self.wrk.ask(ours, pause_ms=pause_ms)
        return LoadWhileApplying(load=load, per_second=(_offsets_of(ours) - before) / (time.monotonic() - began))

    def measure_freshness(self, ours: HttpProcess, filled: FilledTopic) -> None:
        for number in range(self.plan.rounds):
            for rate in FRESHNESS_RATES:
                self.plan.report(f"http: freshness at {rate:,} writes/s, round {number + 1} of {self.plan.rounds}")
                arguments = (str(ours.port), str(rate), str(self.wrk.seconds), str(filled.rows))
                done = run(python("http.freshness", *filled.address, *arguments), self.home)
                self.measured.freshness.setdefault(rate, []).append(done)

    def measure_changes(self, ours: HttpProcess, filled: FilledTopic) -> None:
        seconds = min(5, self.wrk.seconds)
        for number in range(self.plan.rounds):
            self.plan.report(f"http: {READERS} change readers, round {number + 1} of {self.plan.rounds}")
            self.measured.changes.append(self._change_readers(ours, filled, seconds))

    def _change_readers(self, ours: HttpProcess, filled: FilledTopic, seconds: int) -> Run:
        numbers = (ours.port, ours.pid, CHANGES_PER_SECOND, seconds, filled.rows)
        return run(python("http.change_readers", *filled.address, *map(str, numbers)), self.home)


def _offsets_of(server: HttpProcess) -> int:
    """How many offsets of the topic the server has applied."""
    _, body = server.get("/tables/users")
    return sum(Position.parse(json.loads(body)["position"]).values())


def _await(is_done: Callable[[], bool], failure: str) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while not is_done():
        if time.monotonic() > give_up_at:
            raise LastwordError(f"benchmark: {failure} within {_PATIENCE_SECONDS} s")
        time.sleep(0.02)
