"""The report of the benchmark: figures, ratios, targets, and the text of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.alternatives.environment import locked_version
from benchmarks.input.topics import FILLED_PARTITIONS, RECORDS_PER_KEY
from benchmarks.measuring.figures import Figure, Limit, Ratio, Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run

_HOW = """\
Rebuild: from an empty folder to a replica that is on disk and ready. There are two topics of {records:,} records of
about 190 bytes, {partitions} partitions, lz4. "Distinct keys" is what compaction leaves: each key once. "Overwritten
keys" is not yet compacted: {keys:,} keys, each about ten times, one tombstone in a thousand records. Each contender is
a process that reads committed data only, fetches 4 MiB at a time and times itself without its start: lastword from the
call of `Table.replica()` until it returns; the loops from their assignment; Kafka Streams from `start()` to RUNNING;
Quix Streams from its first record. All but the bare loop must end with exactly the rows of the topic. lastword runs
with `memory_mb=1024` and again with 256. The alternatives:

- The bare consume loop ([bare_consume.py](../benchmarks/alternatives/bare_consume.py)) throws every record away. No
  single Python process on librdkafka can be faster.
- The WriteBatch loop ([write_batches.py](../benchmarks/alternatives/write_batches.py)) is what most people would write
  first: each 10,000 records and their position are one batch for RocksDB (rocksdict), with the write-ahead log on.
- Kafka Streams ([KafkaStreamsRestore.java](../benchmarks/alternatives/KafkaStreamsRestore.java)), in Java and of the
  broker's version, restores a KTable on RocksDB with 2 threads. The topic is its changelog. Its fetch, poll and receive
  buffer are larger than the defaults. It does not flush before it is RUNNING.
- kafka-python {kafka_python} ([kafka_python_dict.py](../benchmarks/alternatives/kafka_python_dict.py)) fills a dict in
  memory. Quix Streams {quix} ([quix_state.py](../benchmarks/alternatives/quix_state.py)) fills its state store, without
  a changelog. Both run once, over a topic with a tenth of the records and keys. Rates are compared.

Restart: a new Python process
opens the replica of the updates, with no new records in the topic; from the start of the process until the replica is
ready. Latency: another process writes. The time runs from the delivery report of a write until the replica of the
updates shows the key, which is looked for every half a millisecond. It is 0 if the replica is faster than the report,
so the time from the write is also given. Peak memory is the sum of the peaks of a process and all its children."""


OURS = "lastword"
OURS_WITH_LITTLE_MEMORY = "lastword with 256 MB"
BARE_LOOP = "the bare consume loop"
WRITE_BATCHES = "the WriteBatch loop"
KAFKA_STREAMS = "Kafka Streams"

# Alternative -> the ratio that lastword should reach.
_TARGETS = {BARE_LOOP: 0.6, WRITE_BATCHES: 1.8, KAFKA_STREAMS: 1.0, "kafka-python": None, "Quix Streams": None}
_DISTINCT_TARGETS = {BARE_LOOP: 0.5, WRITE_BATCHES: 1.2, KAFKA_STREAMS: 1.0}
# The share of its speed that lastword should keep with little memory.
_LITTLE_MEMORY_TARGET = 0.7


@dataclass(frozen=True, kw_only=True)
class Rebuild:
    """The runs of one contender, each over the same number of records."""

    what: str
    records: int
    runs: list[Run]

    @property
    def rate(self) -> Figure:
        rounds = tuple(self.records / done.answer["seconds"] for done in self.runs)
        return Figure(what=self.what, unit="records/s", rounds=rounds)

    @property
    def memory(self) -> Figure | None:
        """None where the system has no /proc."""
        peaks = tuple(done.peak_mb for done in self.runs if done.peak_mb is not None)
        return Figure(what=f"{self.what}: peak memory", unit="MB", rounds=peaks) if peaks else None


@dataclass(frozen=True, kw_only=True)
class ReplicaMeasurements:
    """All runs: rebuilds (of overwritten keys, of distinct keys) by contender, latencies by writes a second."""

    rebuilds: dict[str, Rebuild] = field(default_factory=dict)
    distinct: dict[str, Rebuild] = field(default_factory=dict)
    restarts: list[Run] = field(default_factory=list)
    latencies: dict[int, list[Run]] = field(default_factory=dict)

    def add_rebuilds(self, records: int, runs: Mapping[str, list[Run]]) -> None:
        for who, done in runs.items():
            self.rebuilds[who] = Rebuild(what=f"overwritten keys, {who}", records=records, runs=done)

    def add_distinct(self, records: int, runs: Mapping[str, list[Run]]) -> None:
        for who, done in runs.items():
            self.distinct[who] = Rebuild(what=f"distinct keys, {who}", records=records, runs=done)


def replica_result(plan: Plan, measured: ReplicaMeasurements, left_out: Sequence[str]) -> Result:
    rebuilds = (*measured.distinct.values(), *measured.rebuilds.values())
    started = tuple(done.answer["ready_at"] - done.began for done in measured.restarts)
    restart = Figure(what="restart", unit="s", rounds=started)
    latencies = {
        (rate, cut): Figure(
            what=f"latency at {rate:,} writes/s, {cut}", unit="ms", rounds=tuple(done.answer[cut] for done in runs)
        )
        for rate, runs in measured.latencies.items()
        for cut in ("p50", "p99", "p50 from the write", "p99 from the write")
    }
    return Result(
        name="replica",
        title="Replica: rebuild, restart, latency",
        how=_how(plan.records),
        options=plan.options,
        figures=(
            *(each.rate for each in rebuilds),
            restart,
            *latencies.values(),
            *(each.memory for each in rebuilds if each.memory is not None),
        ),
        ratios=_ratios(measured),
        limits=(Limit(figure=restart, target=1.5), Limit(figure=latencies[10, "p50"], target=15)),
        left_out=tuple(left_out),
    )


def _how(records: int) -> str:
    return _HOW.format(
        records=records,
        keys=max(1, records // RECORDS_PER_KEY),
        partitions=FILLED_PARTITIONS,
        kafka_python=locked_version("kafka-python"),
        quix=locked_version("quixstreams"),
    )


def _ratios(measured: ReplicaMeasurements) -> tuple[Ratio, ...]:
    return (
        *_ratios_of("distinct keys", measured.distinct, _DISTINCT_TARGETS),
        *_ratios_of("overwritten keys", measured.rebuilds, _TARGETS),
    )


def _ratios_of(shape: str, rebuilds: Mapping[str, Rebuild], targets: Mapping[str, float | None]) -> Iterator[Ratio]:
    rates = {who: each.rate for who, each in rebuilds.items()}
    for who, target in targets.items():
        if who in rates:
            yield Ratio(what=f"{shape}, lastword to {who}", ours=rates[OURS], theirs=rates[who], target=target)
    yield Ratio(
        what=f"{shape}, {OURS_WITH_LITTLE_MEMORY} to {OURS}",
        ours=rates[OURS_WITH_LITTLE_MEMORY],
        theirs=rates[OURS],
        target=_LITTLE_MEMORY_TARGET,
    )
