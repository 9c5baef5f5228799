"""Measures the fold in Spark: from Kafka and from Parquet, beside the usual recipes, with more keys, and its start."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.alternatives.environment import alternative_in, locked_version, python_of_alternatives
from benchmarks.fold.names import OURS, RECIPE_NAMES, SCAN
from benchmarks.input.topics import FILLED_PARTITIONS, RECORDS_PER_KEY, FilledTopic, updated_topic
from benchmarks.measuring.commands import python
from benchmarks.measuring.figures import Figure, Ratio, Result
from benchmarks.measuring.plan import LeftOut, Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from lastword.kafka.client.connection import Connection

# The second size is so many times the first, and is measured once.
LARGER = 4
GROWTH_KEYS = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
GROWTH_RECORDS = 20_000_000
_SMALL = 10_000

_HOW = """\
A topic of {records:,} records ({keys:,} keys, {partitions} partitions, values of about 190 bytes, a few tombstones) and
the same records as Parquet files. The session is lastword's, on all cores, with 4 GB for the driver. The same session
then folds {larger:,} records of {larger_keys:,} keys, once. All plans take turns, read with the same source options and
write to Spark's `noop` sink. A plan that gives other rows ends the benchmark. CPU is that of the JVM and all Python
workers. The recipes are in [recipes.py](../benchmarks/fold/recipes.py): the scan alone gives every record; Delta MERGE
merges the newest records into an empty table. DuckDB {duckdb} folds the same files without Spark
([duckdb_fold.py](../benchmarks/alternatives/duckdb_fold.py)). Growth: {growth:,} generated records in Parquet with more
and more keys, each folded once. Session + first table: a process from its start to its end, with a topic of {small:,}
rows. Plain settings are Spark's defaults, with the connector on the class path."""


def bench_fold(plan: Plan) -> Result:
    bench = _FoldBenchmark(plan)
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder, plan.cluster() as connection:
        bench.measure(connection, Path(folder))
    return bench.result()


class _FoldBenchmark:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._figures: dict[str, Figure] = {}
        self._ratios: list[Ratio] = []
        self._left_out: list[str] = []

    def measure(self, connection: Connection, folder: Path) -> None:
        records = self._plan.records
        self._plan.report(f"fold: filling a topic with {records:,} updates")
        with updated_topic(connection, records) as first:
            self._plan.report(f"fold: filling a topic with {LARGER * records:,} updates")
            with updated_topic(connection, LARGER * records) as larger:
                self._measure_sizes(connection, folder, (first, larger))
        self._measure_start(connection, folder)

    def _measure_sizes(self, connection: Connection, folder: Path, filled: tuple[FilledTopic, FilledTopic]) -> None:
        folders = [folder / each.topic for each in filled]
        for place in folders:
            place.mkdir()
        first, larger = (
            {"topic": each.topic, "folder": str(place)} for each, place in zip(filled, folders, strict=True)
        )
        self._plan.report("fold: every plan on both topics")
        job = {
            "servers": connection.bootstrap_servers,
            "folder": str(folder),
            "jars": str(self._plan.jars),
            # The first size also warms up the session for the second.
            "sizes": [
                {**first, "rounds": self._plan.rounds, "warm_up": True},
                {**larger, "rounds": 1, "warm_up": False},
            ],
            # A trial with few records skips the growth.
            "growth": GROWTH_KEYS if LARGER * self._plan.records >= GROWTH_RECORDS else (),
            "growth_records": GROWTH_RECORDS,
        }
        answer = run(python("fold.process", json.dumps(job)), folder).answer
        for each, place, size in zip(filled, folders, answer["sizes"], strict=True):
            self._add_sources(each.records, size)
            self._add_duckdb(each, place)
        for keys, timed in answer["growth"].items():
            per_record = timed["cpu"] / GROWTH_RECORDS * 1e6
            self._add(f"growth, {int(keys):,} keys: CPU for each record", "µs", [per_record])

    def _add_sources(self, records: int, answer: dict[str, Any]) -> None:
        size = f"{records / 1e6:g} M records"
        for source, title in (("kafka", "Kafka"), ("parquet", "Parquet")):
            for name, timed in answer[source].items():
                for what in ("wall", "cpu"):
                    seconds = [each[what] for each in timed]
                    self._add(f"from {title}, {size}, {name}: {what.replace('cpu', 'CPU')}", "s", seconds)
        self._compare(f"from Parquet, {size}", "CPU", target=0.6, scan_target=None)
        self._compare(f"from Kafka, {size}", "wall", target=0.85, scan_target=2)

    def _compare(self, where: str, what: str, *, target: float, scan_target: float | None) -> None:
        ours = self._figures[f"{where}, {OURS}: {what}"]
        recipes = [self._figures[name] for r in RECIPE_NAMES if (name := f"{where}, {r}: {what}") in self._figures]
        best = min(recipes, key=lambda figure: figure.median)
        recipe = best.what.removeprefix(f"{where}, ").removesuffix(f": {what}")
        self._ratios += [
            Ratio(
                what=f"{where}, {what}: to {recipe}, the best recipe",
                ours=ours,
                theirs=best,
                target=target,
                bound="at most",
            ),
            Ratio(
                what=f"{where}, {what}: to the {SCAN}",
                ours=ours,
                theirs=self._figures[f"{where}, {SCAN}: {what}"],
                target=scan_target,
                bound="at most",
            ),
        ]

    def _add_duckdb(self, filled: FilledTopic, folder: Path) -> None:
        try:
            interpreter = python_of_alternatives(self._plan)
            answer = run(alternative_in(interpreter, "duckdb_fold", str(folder / "parquet")), folder).answer
        except LeftOut as reason:
            self._left_out.append(str(reason))
            return
        if answer["rows"] != filled.rows:
            raise LeftOut(f"benchmark: DuckDB has {answer['rows']} rows, the topic {filled.rows}")
        for what in ("wall", "cpu"):
            name = f"from Parquet, {filled.records / 1e6:g} M records, DuckDB: {what.replace('cpu', 'CPU')}"
            self._add(name, "s", [answer[what]])

    def _measure_start(self, connection: Connection, folder: Path) -> None:
        with updated_topic(connection, _SMALL * RECORDS_PER_KEY) as filled:
            words = (connection.bootstrap_servers, filled.topic, str(self._plan.jars))

            def started(how: str) -> Run:
                done = run(python("fold.spark_start", how, *words), folder)
                if done.answer["rows"] != filled.rows:
                    raise LeftOut(f"benchmark: {how} has {done.answer['rows']} rows, the topic {filled.rows}")
                return done

            runs = interleaved(
                self._plan,
                "fold: start",
                {how: (lambda how=how: started(how)) for how in ("lastword", "plain")},  # type: ignore[misc]
            )
        names = {"lastword": "session + first table, lastword", "plain": "session + first table, plain settings"}
        for how, name in names.items():
            self._add(name, "s", [done.seconds for done in runs[how]])
        ours, theirs = (self._figures[name] for name in names.values())
        self._ratios.append(
            Ratio(
                what="session + first table, to plain settings", ours=ours, theirs=theirs, target=0.5, bound="at most"
            )
        )

    def _add(self, what: str, unit: Any, rounds: list[float]) -> None:
        self._figures[what] = Figure(what=what, unit=unit, rounds=tuple(rounds))

    def result(self) -> Result:
        records = self._plan.records
        return Result(
            name="fold",
            title="The fold in Spark",
            how=_HOW.format(
                records=records,
                keys=max(1, records // RECORDS_PER_KEY),
                partitions=FILLED_PARTITIONS,
                larger=records * LARGER,
                larger_keys=max(1, records * LARGER // RECORDS_PER_KEY),
                duckdb=locked_version("duckdb"),
                growth=GROWTH_RECORDS,
                small=_SMALL,
            ),
            options=self._plan.options,
            figures=tuple(self._figures.values()),
            ratios=tuple(self._ratios),
            left_out=tuple(self._left_out),
        )
