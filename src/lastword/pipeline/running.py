"""A pipeline that runs: a streaming query over its source, started anew from the changelog whenever it fails."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound, SourceGap, TakenOver
from lastword.kafka.live_settings import topic_identity
from lastword.kafka.transactions import Transactions
from lastword.pipeline.evaluation import counters_of, evaluated, fields_of
from lastword.pipeline.kept_tables import KeptTables
from lastword.pipeline.plan import Pipeline
from lastword.pipeline.portion import Outlet
from lastword.pipeline.progress import Kept, Progress
from lastword.pipeline.reporting import Reporting
from lastword.pipeline.standing import Standing
from lastword.pipeline.takeover import Choice, Taken, new_owner, take_over
from lastword.pipeline.task import REPORT_SQL, PartitionTask
from lastword.pipeline.topics import make_own_topics, record_limits
from lastword.spark.client_settings import portable
from lastword.spark.ending import hush_py4j, jvm_has_ended
from lastword.spark.failures import one_line_failures, told
from lastword.spark.records import changes_from
from lastword.spark.session import connection_of
from lastword.spark.writing import refuse_speculation

# A batch has no more than this for each partition; what it holds in memory is bounded by its tasks.
_BATCH_RECORDS = 100_000
_ARROW_BYTES = 16 * 1024**2
_LOOK_AGAIN_S = 5.0
_STEP_S = 0.1
_BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
# Failures in a row, without any progress between, after which trying again won't help.
_HOPELESS = 5


class SparkEnded(LastwordError):
    pass


# What no new start would mend.
_FINAL = (BadInput, SourceGap, TakenOver, SparkEnded)


class PipelineRun:
    """One driver. `run` returns when it is told to stop, and raises when it can't go on.

    `tell` gets a line for each event, `show` how the pipeline stands, every two seconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Pipeline,
        *,
        choice: Choice | None = None,
        tell: Callable[[str], None] = lambda _: None,
        show: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        refuse_speculation(spark)
        # Of its own, for settings of its own: what can't be computed is null, and stops nothing.
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.ansi.enabled", "false")
        self._plan = plan
        self._choice = choice
        self._tell = tell
        self._show = show
        # A batch of Arrow's is bounded in rows only, else.
        self._spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_ARROW_BYTES))
        self._connection = connection_of(spark)
        self._admin = self._connection.admin()
        self._counters = counters_of(self._spark, plan)
        self._is_stopping = False
        # Held through each batch.
        self._lock = threading.Lock()
        self._is_ending = False
        self._failure: BaseException | None = None
        self._owner = new_owner()
        self._generation: int | None = None
        self._kept: dict[int, Kept] = {}
        self._standing = Standing(plan)

    def stop(self) -> None:
        """The run ends after the commit that is under way. A signal handler may call this."""
        self._is_stopping = True

    def run(self) -> None:
        hush_py4j()
        tries, waits = 0, 0
        while not self._is_stopping:
            began_at = self._standing.records
            try:
                with _told(f"the pipeline {self._plan.app}"):
                    self._run_once()
                tries = waits = 0
            except _FINAL:
                raise
            except LastwordError as failure:
                # A cluster that has just come back may not know its topics yet.
                if isinstance(failure, NotFound) and self._generation is None:
                    raise
                if self._standing.records > began_at:
                    tries = waits = 0
                waits += 1
                # For a cluster that is away it waits as long as it takes.
                tries += not isinstance(failure, ClusterUnreachable)
                if tries >= _HOPELESS:
                    raise
                self._tell(f"{failure}: trying again")
                self._standing.happened(str(failure))
                # Two that start at once would take over from each other for ever.
                jitter = random.uniform(1, 1.5)  # noqa: S311
                self._pause(_BACKOFF_S[min(waits, len(_BACKOFF_S)) - 1] * jitter)

    def _run_once(self) -> None:
        """From a takeover until the query ends: because it was told to, or has to begin anew."""
        make_own_topics(self._connection, self._plan)
        taken = take_over(self._connection, self._plan, owner=self._owner, choice=self._choice, mine=self._generation)
        # It was about what had happened before.
        self._choice = None
        self._generation, self._kept = taken.generation, dict(taken.kept)
        self._is_ending, self._failure = False, None
        begun = f"generation {taken.generation} begins at {self._plan.source.topic} {taken.position}"
        for line in (*taken.skipped, begun):
            self._standing.happened(line)
            self._tell(line)
        with closing(Transactions(self._connection, f"{self._plan.app}-tables")) as transactions:
            tables = KeptTables(transactions, self._plan)
            tables.write(self._progress)
            self._standing.taken(self._progress)
            self._run_query(taken, tables, transactions)
        if self._failure is not None:
            raise self._failure

    def _run_query(self, taken: Taken, tables: KeptTables, transactions: Transactions) -> None:
        reporting = Reporting(
            self._connection,
            self._plan,
            self._standing,
            transactions,
            on_report=self._show,
            on_failure=self._fail,
            tell=self._tell,
        )
        with tempfile.TemporaryDirectory(prefix="lastword-run-", ignore_cleanup_errors=True) as folder, reporting:
            query = self._query(taken, tables, folder)
            try:
                self._watch(query, taken)
            finally:
                # Not while a batch is under way, and then without the lock: a batch that waits for it can't be stopped.
                with self._lock:
                    self._is_ending = True
                query.stop()

    def _watch(self, query: StreamingQuery, taken: Taken) -> None:
        """Returns when the query should end, or has."""
        look_again_at = time.monotonic() + _LOOK_AGAIN_S
        while query.isActive and not self._is_stopping and self._failure is None:
            time.sleep(_STEP_S)
            if time.monotonic() >= look_again_at:
                look_again_at = time.monotonic() + _LOOK_AGAIN_S
                if self._is_another_source(taken):
                    self._tell(f"{self._plan.source.topic} has changed: looking at it anew")
                    return
        if self._is_stopping:
            return
        failure = query.exception()
        # Of a batch it is known better what has failed.
        if failure is not None and self._failure is None:
            self._failure = told(failure, f"reading {self._plan.source.topic}")

    def _query(self, taken: Taken, tables: KeptTables, folder: str) -> StreamingQuery:
        records = changes_from(
            self._spark, self._plan.source.topic, taken.position, limit=_BATCH_RECORDS * len(taken.kept)
        )
        rows = evaluated(records, self._plan, self._counters)
        task = PartitionTask(
            connection=portable(self._connection),
            app=self._plan.app,
            changelog=self._plan.changelog,
            outlet=self._outlet(),
            generation=taken.generation,
            owner=self._owner,
            known={},
        )

        def process(batch: DataFrame, _number: int) -> None:
            with self._lock:
                if self._is_ending or self._is_stopping or self._failure is not None:
                    raise InterruptedError("the pipeline is stopping")
                try:
                    self._process(batch, task, tables)
                except BaseException as failure:
                    self._fail(failure)
                    raise

        writer = rows.writeStream.foreachBatch(process).option("checkpointLocation", folder)
        return writer.queryName(self._plan.app).start()

    def _process(self, batch: DataFrame, task: PartitionTask, tables: KeptTables) -> None:
        began = time.monotonic()
        task = replace(task, known={partition: kept.offset for partition, kept in self._kept.items()})

        def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            yield from task(batches)

        reports = batch.mapInArrow(work, REPORT_SQL).collect()
        for report in reports:
            kept = Kept(progress=Progress.from_json(bytes(report.progress)), offset=report.offset)
            self._kept[report.partition] = kept
        tables.write(self._progress)
        self._standing.committed(
            self._progress,
            tasks=len(reports),
            records=sum(report.records for report in reports),
            newest_ms=max((report.newest_ms for report in reports if report.newest_ms is not None), default=None),
            seconds=time.monotonic() - began,
        )

    def _fail(self, failure: BaseException) -> None:
        # The first one: others may follow from it.
        self._failure = self._failure or failure

    @property
    def _progress(self) -> dict[int, Progress]:
        return {partition: kept.progress for partition, kept in self._kept.items()}

    def _outlet(self) -> Outlet:
        plan = self._plan
        return Outlet(
            source=plan.source.topic,
            fields=fields_of(plan),
            rejects=plan.rejects,
            rules=tuple((rule.name, rule.to) for rule in plan.rules),
            counters=self._counters,
            limits=record_limits(self._connection, plan),
        )

    def _is_another_source(self, taken: Taken) -> bool:
        """Whether it has more partitions by now, or was deleted and made again."""
        topic, admin = self._plan.source.topic, self._admin
        try:
            partitions = len(self._connection.topic(topic, admin).partitions)
            return partitions > len(taken.kept) or topic_identity(admin, topic) != taken.source_id
        except NotFound:
            return True
        except LastwordError:
            # The cluster is away: the batches tell that.
            return False

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_stopping and time.monotonic() < until:
            time.sleep(_STEP_S)


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        with one_line_failures(what):
            yield
    except (LastwordError, OSError):
        if jvm_has_ended():
            raise SparkEnded(f"{what}: Spark's JVM has ended: start it again, and it goes on where it was") from None
        raise
