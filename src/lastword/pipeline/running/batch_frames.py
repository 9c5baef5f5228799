"""The frame that runs a batch: Spark plans it once, and each job of it is a batch that returns reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from lastword.pipeline.evaluation.evaluate import Counter, evaluated, unevaluated
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.commit_task import REPORT_SQL, CommitTask
from lastword.pipeline.running.output_topics import output_topics_of
from lastword.pipeline.running.source import SOURCE_SQL, SourceTask
from lastword.pipeline.running.takeover import Taken
from lastword.spark.session.client_settings import portable
from lastword.spark.session.session import connection_of


@dataclass(frozen=True, kw_only=True)
class BatchSteps:
    """The first and the last step of a task, between which Spark evaluates the rules. They travel to the workers."""

    read: type[SourceTask] = SourceTask
    commit: type[CommitTask] = CommitTask


class BatchFrames:
    """The frames of one takeover, each made at its first use."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Pipeline,
        counters: tuple[Counter, ...],
        *,
        taken: Taken,
        owner: str,
        steps: BatchSteps,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._counters = counters
        self._taken = taken
        self._owner = owner
        self._steps = steps
        self._frames: dict[tuple[int, bool], DataFrame] = {}

    def of(self, tasks: int, *, is_evaluated: bool = True) -> DataFrame:
        """The frame for a batch of this many tasks; without `is_evaluated` it rejects all records."""
        if (tasks, is_evaluated) not in self._frames:
            self._frames[tasks, is_evaluated] = self._frame(tasks, is_evaluated=is_evaluated)
        return self._frames[tasks, is_evaluated]

    def _frame(self, tasks: int, *, is_evaluated: bool) -> DataFrame:
        connection, plan, counters = connection_of(self._spark), self._plan, self._counters
        source = self._steps.read(
            connection=portable(connection), topic=plan.source.topic, topic_id=self._taken.source_id
        )
        task = self._steps.commit(
            connection=portable(connection),
            app=plan.app,
            changelog=plan.changelog,
            output_topics=output_topics_of(connection, plan, counters),
            generation=self._taken.generation,
            owner=self._owner,
        )

        # Spark wants functions.
        def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            yield from source(batches)

        def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            yield from task(batches)

        records = self._spark.range(0, tasks, 1, tasks).mapInArrow(read, SOURCE_SQL)
        rows = evaluated(records, plan, counters) if is_evaluated else unevaluated(records, plan, counters)
        return rows.mapInArrow(work, REPORT_SQL)
