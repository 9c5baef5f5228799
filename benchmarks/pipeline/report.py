"""What was measured of the pipeline, as figures, ratios and words."""

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

# At least so many times as fast.
_TARGETS = {KAFKA_PYTHON: 3.0, CONFLUENT: None, SINK: 0.6, SCAN: None}
_ACTION_P50_MS = 500
_HOW = """\
The fifteen rules of [teams.toml](../pipelines/teams.toml) over {records:,} generated users in {partitions} partitions.

- Throughput: each contender is a process of its own over the same topic, in turns. Its clock runs from the first read
  to the last commit; the start of Python and of Spark is in the figures of the whole process only. What each has
  written is read again, and must be what a recount of the users says: as many actions for each team, and the same
  counters. lastword is the pipeline as `lastword run` runs it, exactly once. kafka-python {kafka_python} and
  confluent-kafka {confluent} are plain loops ([rules_loop.py](../benchmarks/alternatives/rules_loop.py)), one
  process each, without transactions. Spark's own sink is a streaming query that takes all there is, with the same rules
  and source options, into Spark's Kafka sink, at least once; its counters come from the same pass
  ([spark_alone.py](../benchmarks/pipeline/spark_alone.py)). The scan alone reads, parses and forgets. CPU is that
  of a process and all that it started.
- Latency: {rate} users a second for {seconds} s in each round, and a slot of Spark's for each partition, whatever the
  cores: from the timestamp of a user's record until a reader of committed data has an action of it, and until
  `lastword serve`, asked for a row of the table every 10 ms, has counted it. Beside it where the time goes: a
  batch, from the start of its job to the commit of the tables (the median of one every two seconds), and what a worker
  asks of Kafka when it gets a partition that another one had, by itself on a cluster at rest.
- Recovery: `kill -9` of `lastword run` while {rate} users a second come, and it is started again at once: until the new
  one has taken over, and until it has committed results."""


@dataclass(frozen=True, kw_only=True)
class PipelineMeasurements:
    runs: dict[str, list[Run]] = field(default_factory=dict)
    latency: list[Run] = field(default_factory=list)
    batches_ms: list[float] = field(default_factory=list)
    costs_ms: dict[str, float] = field(default_factory=dict)
    recoveries: list[Recovery] = field(default_factory=list)


def pipeline_result(plan: Plan, measured: PipelineMeasurements, left_out: Sequence[str], seconds: int) -> Result:
    rates = {who: _rate(who, runs, plan.records) for who, runs in measured.runs.items()}
    latency = {
        key: Figure(
            what=f"{RATE} users/s, to the {shown}: {key.partition(', ')[2]}",
            unit="ms",
            rounds=tuple(done.answer[key] for done in measured.latency),
        )
        for what, shown in (("action", "action"), ("stats", "counters over HTTP"))
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


def _recoveries(found: Sequence[Recovery]) -> Iterator[Figure]:
    yield Figure(what="kill -9 to the takeover", unit="s", rounds=tuple(each.to_takeover for each in found))
    yield Figure(what="kill -9 to the first new commit", unit="s", rounds=tuple(each.to_commit for each in found))


def _one(what: str, ms: float) -> Figure:
    return Figure(what=what, unit="ms", rounds=(ms,))
