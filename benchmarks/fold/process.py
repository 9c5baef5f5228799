"""A process that folds by every plan, in turns, in one Spark session.

    python -m benchmarks.fold.process JOB

The job is JSON: servers, jars, folder, growth (numbers of keys), growth_records, and sizes (each with topic, folder,
rounds and warm_up). The process prints JSON: for each size, source and plan the wall and CPU seconds (JVM and Python
workers) of each round. All plans of a source must give the same rows.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from benchmarks.fold.names import DELTA_MERGE, OURS, SCAN
from benchmarks.fold.recipes import RECIPES, delta_merge, generated_records
from benchmarks.measuring.cpu_time import cpu_seconds
from benchmarks.measuring.memory import family_of
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.spark import newest_per_key, read_table, stop
from lastword.spark.reading.records import source_options
from lastword.spark.session.session import connection_of, session

Timed = dict[str, float]


class FoldRounds:
    """The rounds of one session: the wall and CPU time of each plan."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        self._used: dict[int, float] = {}

    def run(self, plans: dict[str, Callable[[], DataFrame]], rounds: int, *, warm_up: bool) -> dict[str, list[Timed]]:
        timed: dict[str, list[Timed]] = {name: [] for name in plans}
        expected: tuple[int, int] | None = None
        for number in range(rounds + warm_up):
            for name, plan in plans.items():
                seconds, rows = self._timed(plan)
                if name != SCAN:
                    expected = expected or rows
                    if rows != expected:
                        raise LastwordError(f"{name} gives {rows} (rows, sum of offsets), the others {expected}")
                if number >= warm_up:
                    timed[name].append(seconds)
        return timed

    def _timed(self, plan: Callable[[], DataFrame]) -> tuple[Timed, tuple[int, int]]:
        began, before = time.monotonic(), self._cpu()
        seen = Observation()
        rows = plan().observe(seen, F.count(F.lit(1)).alias("rows"), F.sum("offset").alias("offsets"))
        rows.write.format("noop").mode("overwrite").save()
        seconds = {"wall": time.monotonic() - began, "cpu": self._cpu() - before}
        return seconds, (seen.get["rows"], seen.get["offsets"])

    def _cpu(self) -> float:
        # A worker that has ended still counts, as last seen: Spark ends workers that idle for a minute.
        self._used |= {pid: used for pid in family_of(self._jvm) if (used := cpu_seconds(pid)) is not None}
        return sum(self._used.values()) + sum(os.times()[:2])


def measure(job: dict[str, Any]) -> dict[str, Any]:
    connection, growth = Connection(bootstrap_servers=job["servers"]), Path(job["folder"]) / "growth"
    # Delta's default of 50 tasks for the state of a table is for a cluster.
    settings = {"spark.driver.memory": "4g", "spark.databricks.delta.snapshotPartitions": "2"}
    spark = session(connection, delta=True, jars=Path(job["jars"]), settings=settings)
    try:
        rounds = FoldRounds(spark)
        return {
            "sizes": [_size(spark, rounds, size) for size in job["sizes"]],
            "growth": {
                str(keys): _growth(spark, rounds, growth, job["growth_records"], keys) for keys in job["growth"]
            },
        }
    finally:
        stop(spark)


def _size(spark: SparkSession, rounds: FoldRounds, size: dict[str, Any]) -> dict[str, Any]:
    topic, folder = size["topic"], Path(size["folder"])
    kafka = {SCAN: lambda: _from_kafka(spark, topic), **_recipes(lambda: _from_kafka(spark, topic))}
    kafka[OURS] = lambda: read_table(spark, topic, key="bytes", value="bytes")
    from_kafka = rounds.run(kafka, size["rounds"], warm_up=size["warm_up"])
    _from_kafka(spark, topic).write.parquet(str(folder / "parquet"))
    from_parquet = rounds.run(_from_parquet(spark, folder), size["rounds"], warm_up=size["warm_up"])
    return {"kafka": from_kafka, "parquet": from_parquet}


def _recipes(records: Callable[[], DataFrame]) -> dict[str, Callable[[], DataFrame]]:
    return {name: (lambda recipe=recipe: recipe(records())) for name, recipe in RECIPES.items()}  # type: ignore[misc]


def _from_kafka(spark: SparkSession, topic: str) -> DataFrame:
    """As `read_records`, but without headers, which no recipe needs."""
    options = {**source_options(connection_of(spark)), "includeHeaders": "false", "subscribe": topic}
    return spark.read.format("kafka").options(**options).load().drop("topic", "timestampType")


def _from_parquet(spark: SparkSession, folder: Path) -> dict[str, Callable[[], DataFrame]]:
    def records() -> DataFrame:
        return spark.read.parquet(str(folder / "parquet"))

    def merged() -> DataFrame:
        shutil.rmtree(folder / "delta", ignore_errors=True)
        return delta_merge(records(), folder / "delta")

    return {
        SCAN: records,
        **_recipes(records),
        DELTA_MERGE: merged,
        OURS: lambda: newest_per_key(records()),
    }


def _growth(spark: SparkSession, rounds: FoldRounds, folder: Path, records: int, keys: int) -> Timed:
    generated_records(spark, records, keys).write.parquet(str(folder))
    plans = {OURS: lambda: newest_per_key(spark.read.parquet(str(folder)))}
    (timed,) = rounds.run(plans, 1, warm_up=False)[OURS]
    shutil.rmtree(folder)
    return timed


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
