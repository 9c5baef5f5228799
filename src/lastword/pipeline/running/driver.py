"""The driver of a pipeline: it runs batch after batch, and restarts from the changelog whenever one fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound, SourceGap, TakenOver
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.kafka.client.live_settings import topics_now
from lastword.kafka.client.transactions import Transactions
from lastword.kafka.topics.topic_description import committed_ends
from lastword.pipeline.evaluation.evaluate import counters_of
from lastword.pipeline.evaluation.guarding import guarded
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.batch_frames import BatchFrames, BatchSteps
from lastword.pipeline.running.counter_tables import KeptTables
from lastword.pipeline.running.isolation import Isolation, blame_of
from lastword.pipeline.running.own_topics import make_own_topics
from lastword.pipeline.running.pipeline_status import RunStatus
from lastword.pipeline.running.progress import PartitionProgress, StoredProgress
from lastword.pipeline.running.source import BatchLimits, Share, batch_of
from lastword.pipeline.running.source_ends import LogEnds
from lastword.pipeline.running.status_reports import Reporting
from lastword.pipeline.running.takeover import Choice, Taken, new_owner, take_over
from lastword.spark.session.failures import one_line_failures
from lastword.spark.session.session import connection_of
from lastword.spark.session.shutdown import hush_lost_jvm, jvm_has_ended
from lastword.spark.writing.write_table import refuse_speculation

_SETTINGS = {
    # Java does not compile methods of more than 8000 bytes, and all rules as one method are larger. With this limit
    # Spark makes a method for each step of the plan instead.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # The size of the batches that go to Python: each batch has a fixed cost for every column.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 1024**2),
}
_WAIT_S = 0.02
_LOOK_AGAIN_S = 1.0
_STEP_S = 0.1
_BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
# After this many failures in a row without progress, another try will not help.
_HOPELESS = 5


class SparkEnded(LastwordError):
    pass


# A restart does not help against these.
_FINAL = (BadInput, SourceGap, TakenOver)


class PipelineRun:
    """One driver. `run` returns after `stop`, and raises when it can't continue.

    `on_event` gets a line for each event, `on_status` the status every two seconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Pipeline,
        *,
        choice: Choice | None = None,
        on_event: Callable[[str], None] = lambda _: None,
        on_status: Callable[[PipelineStatus], None] = lambda _: None,
        limits: BatchLimits = BatchLimits(),  # noqa: B008 - frozen
        steps: BatchSteps = BatchSteps(),  # noqa: B008 - frozen
    ) -> None:
        refuse_speculation(spark)
        self._spark = guarded(spark)
        self._plan = plan
        self._choice = choice
        self._on_event = on_event
        self._on_status = on_status
        self._limits = limits
        self._steps = steps
        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        self._connection = connection_of(spark)
        self._admin = self._connection.admin()
        self._counters = counters_of(self._spark, plan)
        self._is_stopping = False
        self._failure: BaseException | None = None
        self._owner = new_owner()
        self._generation: int | None = None
        self._stored: dict[int, StoredProgress] = {}
        self._status = RunStatus(plan)
        self._isolation = Isolation()

    def stop(self) -> None:
        """The run ends after the commit that is under way. A signal handler may call this."""
        self._is_stopping = True

    def run(self) -> None:
        hush_lost_jvm()
        tries, waits = 0, 0
        while not self._is_stopping:
            began_at = self._status.records
            try:
                with _naming_lost_jvm(f"the pipeline {self._plan.app}"):
                    self._run_once()
                tries = waits = 0
            except SparkEnded:
                # A signal to the process group ends the JVM too, which loses nothing.
                if not self._is_stopping:
                    raise
            except _FINAL:
                raise
            except LastwordError as failure:
                # A cluster that has just come back may not know its topics yet: only at the first start a missing topic
                # is an error.
                if isinstance(failure, NotFound) and self._generation is None:
                    raise
                if self._status.records > began_at:
                    tries = waits = 0
                waits += 1
                # For an unreachable cluster it waits without a limit.
                tries += not isinstance(failure, ClusterUnreachable)
                if tries >= _HOPELESS:
                    raise
                self._on_event(f"{failure}: trying again")
                self._status.happened(str(failure))
                # Without jitter two drivers that start together would take over from each other for ever.
                jitter = random.uniform(1, 1.5)  # noqa: S311
                self._pause(_BACKOFF_S[min(waits, len(_BACKOFF_S)) - 1] * jitter)

    def _run_once(self) -> None:
        """From a takeover until `stop`, or until a new takeover is needed."""
        make_own_topics(self._connection, self._plan)
        taken = take_over(
            self._connection,
            self._plan,
            owner=self._owner,
            choice=self._choice,
            mine=self._generation,
            reached=self._progress,
        )
        # The choice was for the first start only.
        self._choice = None
        self._generation, self._stored = taken.generation, dict(taken.stored)
        self._failure = None
        start = f"generation {taken.generation} begins at {self._plan.source.topic} {taken.position}"
        for line in (*taken.skipped, start):
            self._happened(line)
        with closing(Transactions(self._connection, f"{self._plan.app}-tables")) as transactions:
            tables = KeptTables(transactions, self._plan)
            tables.write(self._progress)
            self._status.taken(self._progress)
            self._run_batches(taken, tables, transactions)
        if self._failure is not None:
            raise self._failure

    def _run_batches(self, taken: Taken, tables: KeptTables, transactions: Transactions) -> None:
        """Until `stop`, a failure, or a change of the source."""
        reporting = Reporting(
            self._connection,
            self._plan,
            self._status,
            transactions,
            on_report=self._on_status,
            on_failure=self._fail,
            on_event=self._on_event,
        )
        topic, look_again_at = self._plan.source.topic, 0.0
        frames = BatchFrames(self._spark, self._plan, self._counters, taken=taken, owner=self._owner, steps=self._steps)
        ends = LogEnds(
            topic,
            lambda: committed_ends(self._connection, self._admin, topic, self._stored),
            self._happened,
            patience_s=self._connection.patience_s,
        )
        with reporting:
            while not self._is_stopping and self._failure is None:
                tasks = self._tasks(ends)
                # Always before a batch is read.
                if tasks or time.monotonic() >= look_again_at:
                    look_again_at = time.monotonic() + _LOOK_AGAIN_S
                    if self._has_changed(taken, is_sure=bool(tasks)):
                        self._on_event(f"{topic} has changed: the pipeline takes over again")
                        return
                if not tasks:
                    time.sleep(_WAIT_S)
                    continue
                self._run_batch_or_narrow(frames, tasks, tables)

    def _run_batch_or_narrow(self, frames: BatchFrames, tasks: list[list[Share]], tables: KeptTables) -> None:
        """Runs a batch. If a record makes it fail, smaller batches follow until the record alone is rejected."""
        shares = [share for of_task in tasks for share in of_task]
        try:
            self._run_batch(frames.of(len(tasks)), tasks, tables)
        except (PySparkException, Py4JError) as failure:
            blame = blame_of(failure)
            if blame is None or jvm_has_ended():
                raise
            alone = self._isolation.narrow(shares)
            if alone is not None:
                # If a batch without records fails too, no record is to blame: this raises.
                self._run_batch(frames.of(1), [[alone._replace(end=alone.begin)]], tables)
                self._run_batch(frames.of(1, is_evaluated=False), [[alone._replace(blame=blame)]], tables)
                self._happened(f"{self._plan.source.topic}/{alone.partition}/{alone.begin} is rejected: {blame}")
        else:
            self._isolation.widen(shares)

    def _tasks(self, ends: LogEnds) -> list[list[Share]]:
        """The shares of the next batch, task by task; empty when there is nothing to read."""
        reached = {partition: stored.progress.next_offset for partition, stored in self._stored.items()}
        shares = {
            partition: Share(
                partition=partition,
                begin=reached[partition],
                end=min(end, reached[partition] + self._limits.partition_records),
                known=self._stored[partition].offset,
            )
            for partition, end in ends.past(reached).items()
        }
        shares = self._isolation.bounded(shares)
        if sum(share.end - share.begin for share in shares.values()) <= self._limits.one_task_records:
            return [[*shares.values()]] if shares else []
        return [[shares[partition]] if partition in shares else [] for partition in self._stored]

    def _run_batch(self, frame: DataFrame, tasks: Sequence[Sequence[Share]], tables: KeptTables) -> None:
        began = time.monotonic()
        with batch_of(self._spark.sparkContext, tasks):
            reports = frame.rdd.collect()
        for report in reports:
            stored = StoredProgress(progress=PartitionProgress.from_json(bytes(report.progress)), offset=report.offset)
            self._stored[report.partition] = stored
        tables.write(self._progress)
        self._status.committed(
            self._progress,
            tasks=sum(1 for shares in tasks if shares),
            records=sum(report.records for report in reports),
            newest_ms=max((report.newest_ms for report in reports if report.newest_ms is not None), default=None),
            seconds=time.monotonic() - began,
        )

    def _happened(self, line: str) -> None:
        self._status.happened(line)
        self._on_event(line)

    def _fail(self, failure: BaseException) -> None:
        # The first failure: others may be its consequences.
        self._failure = self._failure or failure

    @property
    def _progress(self) -> dict[int, PartitionProgress]:
        return {partition: stored.progress for partition, stored in self._stored.items()}

    def _has_changed(self, taken: Taken, *, is_sure: bool) -> bool:
        """Whether the source has got partitions, or the source or the changelog was deleted and created again.

        If the cluster does not answer, the answer is no, or with `is_sure` an error.
        """
        source, changelog = self._plan.source.topic, self._plan.changelog
        try:
            now = topics_now(self._admin, [source, changelog])
        except NotFound:
            return True
        except LastwordError:
            if is_sure:
                raise
            return False
        return (
            now[source].partitions > len(taken.stored)
            or now[source].identity != taken.source_id
            or now[changelog].identity != taken.changelog_id
        )

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_stopping and time.monotonic() < until:
            time.sleep(_STEP_S)


@contextmanager
def _naming_lost_jvm(what: str) -> Iterator[None]:
    """Errors of Spark as one line; SparkEnded when the JVM is gone."""
    try:
        with one_line_failures(what):
            yield
    except (LastwordError, OSError):
        if jvm_has_ended():
            raise SparkEnded(
                f"{what} stopped, because Spark's JVM has ended: start the pipeline again to continue"
            ) from None
        raise
