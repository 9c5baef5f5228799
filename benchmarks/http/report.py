"""The report of the benchmark: figures, ratios, targets, and the text of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.alternatives.environment import locked_version
from benchmarks.http.change_readers import READERS
from benchmarks.http.wrk import CONNECTIONS, LoadResult
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

# The average pause of a connection before a request, in ms.
MODERATE = "moderate load"
SATURATED = "saturated"
LOADS = {MODERATE: 32, SATURATED: 0}

_HOW = """\
`lastword serve` has a table of {records:,} rows of about 190 bytes ({partitions} partitions). It is one process with
its replica. The client is wrk with one thread and {connections} kept-alive connections. Each load lasts {seconds} s
and asks for random keys ([point_reads.lua](../benchmarks/http/point_reads.lua)). An answer that is not a row ends the
benchmark. CPU is that of the server's process with all threads: it depends less than a rate on other processes of the
machine.

- Point reads: each connection sends its next request when it has its answer. FastAPI {fastapi} on uvicorn {uvicorn}
  (one worker, uvloop and httptools, [fastapi_dict.py](../benchmarks/alternatives/fastapi_dict.py)) has the same rows
  in a dict and gives the same JSON, without ETag or position. nginx, one process, sends files of the same size: this
  shows what a server in C reaches without any lookup. All servers run the whole time and are asked in turns.
- While {applied:,} records/s are applied: another process writes records to keys all over the table, together every 4
  ms. The saturated load is that of the point reads, and has the target. The moderate load pauses between requests, so
  that no request waits for a core at rest. Its p99 at rest is that of an idle server. Its ratio therefore also shows
  the other processes (writer, broker, wrk) that need one of the two cores at the same moment.
- Freshness: from the return of `Table.put` until an HTTP answer to the same process has the new value. The process
  asks every half a millisecond, or once with `min_position`. There are ten such probes a second, while another process
  writes 10 or 10,000 records/s.
- Change streams: {readers} readers of the table's changes, all in one process, while {changes:,} records/s are
  written. One latency is from the delivery report of the write, for a hundred samples a second; it is 0 if the reader
  is faster than the report. The other is from the moment the value was handed to its producer, which each value
  carries. Every reader must get every change exactly once, or the benchmark fails."""


@dataclass(frozen=True, kw_only=True)
class LoadWhileApplying:
    load: LoadResult
    # Records that were applied meanwhile.
    per_second: float


@dataclass(frozen=True, kw_only=True)
class HttpMeasurements:
    """All runs: reads by server, loads by name (at rest, applying), freshness by rate."""

    reads: dict[str, list[LoadResult]] = field(default_factory=dict)
    loads: dict[str, tuple[list[LoadWhileApplying], list[LoadWhileApplying]]] = field(default_factory=dict)
    freshness: dict[int, list[Run]] = field(default_factory=dict)
    changes: list[Run] = field(default_factory=list)


def http_result(plan: Plan, measured: HttpMeasurements, left_out: Sequence[str], seconds: int) -> Result:
    rates = {who: _rate(f"point reads, {who}", runs) for who, runs in measured.reads.items()}
    loads = {
        (load, how): _p99(f"{load}, {how}: p99", [each.load for each in runs])
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
            *_load_rates(measured),
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
        readers=READERS,
        changes=CHANGES_PER_SECOND,
    )


def _latencies(measured: HttpMeasurements) -> Iterator[Figure]:
    for who, runs in measured.reads.items():
        yield Figure(what=f"point reads, {who}: p50", unit="ms", rounds=tuple(each.p50_ms for each in runs))
        yield _p99(f"point reads, {who}: p99", runs)
        yield from _cpu_of_reads(who, runs)


def _cpu_of_reads(who: str, runs: Sequence[LoadResult]) -> Iterator[Figure]:
    return _cpu(f"point reads, {who}: CPU for each", [(each.cpu_s, each.requests) for each in runs])


def _cpu_ratios(reads: Mapping[str, Sequence[LoadResult]]) -> Iterator[Ratio]:
    """The CPU time of a read: it depends less than the rate on other processes."""
    cpu = {who: figure for who, runs in reads.items() for figure in _cpu_of_reads(who, runs)}
    for who in (FASTAPI, NGINX):
        # A short load may use less CPU than one tick of the system's clock.
        if OURS in cpu and who in cpu and min(cpu[who].rounds) > 0:
            yield Ratio(
                what=f"CPU for each point read, lastword to {who}", ours=cpu[OURS], theirs=cpu[who], bound="at most"
            )


def _load_rates(measured: HttpMeasurements) -> Iterator[Figure]:
    """The rates of the loads: requests, and records applied."""
    for load, pair in measured.loads.items():
        for how, runs in zip(("at rest", "applying"), pair, strict=True):
            yield _rate(f"{load}, {how}", [each.load for each in runs])
        yield Figure(what=f"{load}: applied", unit="records/s", rounds=tuple(each.per_second for each in pair[1]))


def _changes(runs: Sequence[Run]) -> Iterator[Figure]:
    for cut in ("p50", "p99", "p50 from the write", "p99 from the write"):
        yield _figure(f"{READERS} change readers, {cut}", runs, cut)
    answers = [each.answer for each in runs]
    for who in ("server", "readers"):
        cpu_times = [(each[f"{who}_cpu_s"], each["seconds"]) for each in answers]
        shares = tuple(100 * cpu_s / seconds for cpu_s, seconds in cpu_times if cpu_s is not None)
        if shares:
            yield Figure(what=f"{READERS} change readers, CPU of the {who}", unit="% of a core", rounds=shares)
    delivered = [(each["server_cpu_s"], each["delivered"]) for each in answers]
    yield from _cpu(f"{READERS} change readers, CPU of the server for each change and reader", delivered)


def _cpu(what: str, cpu_times: Sequence[tuple[float | None, int]]) -> Iterator[Figure]:
    """No figure where the system has no /proc."""
    each = tuple(seconds * 1e6 / count for seconds, count in cpu_times if seconds is not None)
    if each:
        yield Figure(what=what, unit="µs", rounds=each)


def _rate(what: str, runs: Sequence[LoadResult]) -> Figure:
    return Figure(what=what, unit="requests/s", rounds=tuple(each.rate for each in runs))


def _p99(what: str, runs: Sequence[LoadResult]) -> Figure:
    return Figure(what=what, unit="ms", rounds=tuple(each.p99_ms for each in runs))


def _figure(what: str, runs: Sequence[Run], name: str) -> Figure:
    return Figure(what=what, unit="ms", rounds=tuple(each.answer[name] for each in runs))
