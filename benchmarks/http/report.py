"""What was measured of the HTTP service, as figures, ratios and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.alternatives.environment import locked_version
from benchmarks.http.change_readers import READERS
from benchmarks.http.wrk import CONNECTIONS, Asked
from benchmarks.input.topics import FILLED_PARTITIONS
from benchmarks.measuring.figures import Figure, Limit, Ratio, Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run

OURS = "lastword"
FASTAPI = "FastAPI"
NGINX = "nginx"

APPLIED_PER_SECOND = 20_000
FRESHNESS_RATES = (10, 10_000)
CHANGES_PER_SECOND = 1000

# How long each connection pauses before a request, in ms and on average.
MODERATE = "moderate load"
SATURATED = "saturated"
LOADS = {MODERATE: 32, SATURATED: 0}

_HOW = """\
`lastword serve` with a table of {records:,} rows of about 190 bytes ({partitions} partitions), a process of its own
with its replica. Loads come from wrk on one thread over {connections} kept-alive connections, for {seconds} s each, and
ask for random keys with [point_reads.lua](../benchmarks/http/point_reads.lua). An answer that is not a row ends the
benchmark. CPU is that of the server's process, all threads: it depends less than a rate on what else the machine does.

- Point reads: each connection sends its next request as soon as it has its answer. FastAPI {fastapi} on uvicorn
  {uvicorn} (one worker, uvloop and httptools, [fastapi_dict.py](../benchmarks/alternatives/fastapi_dict.py))
  has the same rows in a dict and gives the same JSON, without ETag or position. nginx, one process, sends files of the
  same size: what a server in C does with nothing to look up. All run all the while and are asked in turns.
- While {applied:,} records/s are applied: another process writes them to keys all over the table, together every 4 ms.
  The saturated load is that of the point reads, and has the target. The moderate one pauses between requests, so that
  nobody waits for a processor at rest: its p99 is then that of an idle server, and its ratio shows every other process
  of the machine (writer, broker, wrk) that wants one of two cores in the same moment.
- Freshness: from the return of `Table.put` in one process until an answer over HTTP, to the same process, has the new
  value: asked for every half a millisecond, or once with `min_position`. Ten such probes a second, while another
  process writes 10 or 10,000 records/s.
- Change streams: {readers} readers of the table's changes, all in one process, while {changes:,} records/s are written.
  Latency is from the delivery report of the write (for a hundred samples a second; 0 where a reader has it before its
  writer has the report), and from the moment that each value carries, when it was handed to its producer. Every reader
  must get every change once, or the benchmark fails."""


@dataclass(frozen=True, kw_only=True)
class AppliedMeanwhile:
    asked: Asked
    per_second: float


@dataclass(frozen=True, kw_only=True)
class HttpMeasurements:
    """Everything that was run: reads by who answered, loads by their name (at rest, applying), freshness by rate."""

    reads: dict[str, list[Asked]] = field(default_factory=dict)
    loads: dict[str, tuple[list[AppliedMeanwhile], list[AppliedMeanwhile]]] = field(default_factory=dict)
    freshness: dict[int, list[Run]] = field(default_factory=dict)
    changes: list[Run] = field(default_factory=list)


def http_result(plan: Plan, measured: HttpMeasurements, left_out: Sequence[str], seconds: int) -> Result:
    rates = {who: _rate(f"point reads, {who}", runs) for who, runs in measured.reads.items()}
    loads = {
        (load, how): _p99(f"{load}, {how}: p99", [each.asked for each in runs])
        for load, pair in measured.loads.items()
        for how, runs in zip(("at rest", "applying"), pair, strict=True)
    }
    freshness = {
        (rate, cut): _figure(f"freshness at {rate:,} writes/s, {cut}", runs, cut)
        for rate, runs in measured.freshness.items()
        for cut in ("p50", "p99", "with min_position, p50", "with min_position, p99")
    }
    return Result(
        name="http",
        title="HTTP: point reads, freshness, change streams",
        how=_how(plan.records, seconds),
        options=plan.options,
        figures=(
            *rates.values(),
            *_latencies(measured),
            *loads.values(),
            *_meanwhile(measured),
            *freshness.values(),
            *_changes(measured.changes),
        ),
        ratios=(
            *(
                Ratio(what=f"point reads, lastword to {who}", ours=rates[OURS], theirs=rates[who], target=target)
                for who, target in ((FASTAPI, 3.0), (NGINX, None))
                if who in rates
            ),
            *_cpu_ratios(measured.reads),
            *(
                Ratio(
                    what=f"p99, applying to at rest, {load}",
                    ours=loads[load, "applying"],
                    theirs=loads[load, "at rest"],
                    target=2.0 if load == SATURATED else None,
                    bound="at most",
                )
                for load in measured.loads
            ),
        ),
        limits=(Limit(figure=freshness[FRESHNESS_RATES[0], "p50"], target=20),),
        left_out=tuple(left_out),
    )


def _how(records: int, seconds: int) -> str:
    return _HOW.format(
        records=records,
        partitions=FILLED_PARTITIONS,
        connections=CONNECTIONS,
        seconds=seconds,
        fastapi=locked_version("fastapi"),
        uvicorn=locked_version("uvicorn"),
        applied=APPLIED_PER_SECOND,
        pause=LOADS[MODERATE],
        rate=CONNECTIONS * 1000 // LOADS[MODERATE],
        readers=READERS,
        changes=CHANGES_PER_SECOND,
    )


def _latencies(measured: HttpMeasurements) -> Iterator[Figure]:
    for who, runs in measured.reads.items():
        yield Figure(what=f"point reads, {who}: p50", unit="ms", rounds=tuple(each.p50_ms for each in runs))
        yield _p99(f"point reads, {who}: p99", runs)
        yield from _cpu_of_reads(who, runs)


def _cpu_of_reads(who: str, runs: Sequence[Asked]) -> Iterator[Figure]:
    return _cpu(f"point reads, {who}: CPU for each", [(each.cpu_s, each.requests) for each in runs])


def _cpu_ratios(reads: Mapping[str, Sequence[Asked]]) -> Iterator[Ratio]:
    """Beside the rates, which depend on who else wants the processors: what a read takes of them."""
    cpu = {who: figure for who, runs in reads.items() for figure in _cpu_of_reads(who, runs)}
    for who in (FASTAPI, NGINX):
        # A short load may take less than the system's clock ticks.
        if OURS in cpu and who in cpu and min(cpu[who].rounds) > 0:
            yield Ratio(
                what=f"CPU for each point read, lastword to {who}", ours=cpu[OURS], theirs=cpu[who], bound="at most"
            )


def _meanwhile(measured: HttpMeasurements) -> Iterator[Figure]:
    """What else is to be known of the loads: how many were asked for, and how much was applied."""
    for load, pair in measured.loads.items():
        for how, runs in zip(("at rest", "applying"), pair, strict=True):
            yield _rate(f"{load}, {how}", [each.asked for each in runs])
        yield Figure(what=f"{load}: applied", unit="records/s", rounds=tuple(each.per_second for each in pair[1]))


def _changes(runs: Sequence[Run]) -> Iterator[Figure]:
    for cut in ("p50", "p99", "p50 from the write", "p99 from the write"):
        yield _figure(f"{READERS} change readers, {cut}", runs, cut)
    answers = [each.answer for each in runs]
    for who in ("server", "readers"):
        taken = [(each[f"{who}_cpu_s"], each["seconds"]) for each in answers]
        shares = tuple(100 * cpu_s / seconds for cpu_s, seconds in taken if cpu_s is not None)
        if shares:
            yield Figure(what=f"{READERS} change readers, CPU of the {who}", unit="% of a core", rounds=shares)
    delivered = [(each["server_cpu_s"], each["delivered"]) for each in answers]
    yield from _cpu(f"{READERS} change readers, CPU of the server for each change and reader", delivered)


def _cpu(what: str, taken: Sequence[tuple[float | None, int]]) -> Iterator[Figure]:
    """Nothing where the system does not tell."""
    each = tuple(seconds * 1e6 / count for seconds, count in taken if seconds is not None)
    if each:
        yield Figure(what=what, unit="µs", rounds=each)


def _rate(what: str, runs: Sequence[Asked]) -> Figure:
    return Figure(what=what, unit="requests/s", rounds=tuple(each.rate for each in runs))


def _p99(what: str, runs: Sequence[Asked]) -> Figure:
    return Figure(what=what, unit="ms", rounds=tuple(each.p99_ms for each in runs))


def _figure(what: str, runs: Sequence[Run], name: str) -> Figure:
    return Figure(what=what, unit="ms", rounds=tuple(each.answer[name] for each in runs))
