"""The report of the benchmark: figures, ratios, targets, and the text of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.alternatives.environment import locked_version
from benchmarks.measuring.figures import Figure, Limit, Ratio, Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run
from benchmarks.pipeline.recovery import Recovery
from benchmarks.pipeline.topics import PARTITIONS, RATE

OURS = "lastword"
KAFKA_PYTHON = "kafka-python"
CONFLUENT = "confluent-kafka"
SINK = "Spark's own sink"
SCAN = "Spark's scan and parse alone"

# Contender -> how many times as fast lastword should be.
_TARGETS = {KAFKA_PYTHON: 3.0, CONFLUENT: None, SINK: 0.6, SCAN: None}
_ACTION_P50_MS = 500
_HOW = """\
The fifteen rules of [teams.toml](../pipelines/teams.toml) over {records:,} generated users in {partitions} partitions.

- Throughput: each contender is a process over the same topic; they take turns. The clock of a process runs from its
  first read to its last commit. The start of Python and of Spark is only in the figures of the whole process. The
  results of each contender are read again and must be equal to a recount of the users: the number of actions for each
  team, and the counters. lastword is the pipeline as `lastword run` runs it, exactly once. kafka-python {kafka_python}
  and confluent-kafka {confluent} are plain loops ([rules_loop.py](../benchmarks/alternatives/rules_loop.py)), one
  process each, without transactions. Spark's own sink is a streaming query over all users, with the same rules and
  source options, into Spark's Kafka sink, at least once; its counters come from the same pass
  ([spark_alone.py](../benchmarks/pipeline/spark_alone.py)). The scan alone reads and parses, and drops the result. CPU
  is that of a process and all its children.
- Latency: {rate} users a second for {seconds} s in each round, with a Spark slot for each partition, whatever the
  number of cores. One time is from the timestamp of a user's record until a reader of committed data has an action of
  this user. The other is until `lastword serve`, asked for a row of the table every 10 ms, has counted the user. The
  parts of the latency are also given: a batch, from the start of its job to the commit of the tables (median of one
  batch every two seconds), and what a worker needs from Kafka when it takes a partition from another worker, alone on
  a cluster at rest.
- Recovery: `kill -9` of `lastword run` while {rate} users a second are written, then an immediate restart: until the
  new process has taken over, and until it has committed results."""


@dataclass(frozen=True, kw_only=True)
class PipelineMeasurements:
    """All runs: throughput by contender, latency with its parts, and recoveries."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    latency: list[Run] = field(default_factory=list)
    batches_ms: list[float] = field(default_factory=list)
    costs_ms: dict[str, float] = field(default_factory=dict)
    recoveries: list[Recovery] = field(default_factory=list)


def pipeline_result(plan: Plan, measured: PipelineMeasurements, left_out: Sequence[str], seconds: int) -> Result:
    rates = {who: _rate(who, runs, plan.records) for who, runs in measured.runs.items()}
    latency = {
        key: Figure(
            what=f"{RATE} users/s, to the {title}: {key.partition(', ')[2]}",
            unit="ms",
            rounds=tuple(done.answer[key] for done in measured.latency),
        )
        for what, title in (("action", "action"), ("stats", "counters over HTTP"))
        for key in (f"{what}, p50", f"{what}, p99")
    }
    return Result(
        name="pipeline",
        title="The pipeline: fifteen rules over generated users",
        how=_how(plan.records, seconds),
        options=plan.options,
        figures=(
            *rates.values(),
            *_whole(measured.runs),
            *latency.values(),
            *(_one(f"{RATE} users/s, a batch", median(measured.batches_ms)) for _ in measured.batches_ms[:1]),
            *(_one(f"a worker that gets a partition, {what}", ms) for what, ms in measured.costs_ms.items()),
            *_recoveries(measured.recoveries),
        ),
        ratios=tuple(
            Ratio(what=f"throughput, lastword to {who}", ours=rates[OURS], theirs=rates[who], target=target)
            for who, target in _TARGETS.items()
            if who in rates
        ),
        limits=(Limit(figure=latency["action, p50"], target=_ACTION_P50_MS),),
        left_out=tuple(left_out),
    )


def _how(records: int, seconds: int) -> str:
    return _HOW.format(
        records=records,
        partitions=PARTITIONS,
        kafka_python=locked_version("kafka-python"),
        confluent=locked_version("confluent-kafka"),
        rate=RATE,
        seconds=seconds,
    )


def _rate(who: str, runs: Sequence[Run], records: int) -> Figure:
    rounds = tuple(records / done.answer["seconds"] for done in runs)
    return Figure(what=f"throughput, {who}", unit="records/s", rounds=rounds)


def _whole(runs: Mapping[str, Sequence[Run]]) -> Iterator[Figure]:
    for who, each in runs.items():
        yield Figure(what=f"whole process, {who}: wall", unit="s", rounds=tuple(done.seconds for done in each))
        yield Figure(what=f"whole process, {who}: CPU", unit="s", rounds=tuple(done.cpu_s for done in each))


def _recoveries(recoveries: Sequence[Recovery]) -> Iterator[Figure]:
    yield Figure(what="kill -9 to the takeover", unit="s", rounds=tuple(each.to_takeover for each in recoveries))
    yield Figure(what="kill -9 to the first new commit", unit="s", rounds=tuple(each.to_commit for each in recoveries))


def _one(what: str, ms: float) -> Figure:
    return Figure(what=what, unit="ms", rounds=(ms,))
