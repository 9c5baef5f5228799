"""The exactly-once commit: a task writes the results of a source partition and its progress in one transaction.

A task runs in a Python worker of Spark, maybe twice, maybe beside a second attempt, maybe for a driver that has been
replaced. So it trusts only what is committed: it takes the partition's transactional id, which stops any other writer,
reads the progress, skips the records before it, and commits every buffer together with the progress after it.

The worker keeps the id. If its next task continues where this one ended, nobody has written in between, or the commit
fails. So most tasks of a quiet pipeline need not take an id or read progress.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy
import pyarrow
from msgspec.structs import replace

from lastword.core.errors import HistoryLost, LastwordError, PositionGone, SourceGap
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.transactions import Transactions
from lastword.pipeline.running.output_topics import OutputTopics
from lastword.pipeline.running.parallel import for_each
from lastword.pipeline.running.progress import (
    StoredProgress,
    newest_progress,
    progress_record,
    refuse_newer,
    transactional_id,
)
from lastword.pipeline.running.source import Share, Shares, shares_of_task, spare_imports
from lastword.pipeline.running.transaction_buffer import TransactionBuffer

REPORT = pyarrow.schema(
    [
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("progress", pyarrow.binary()),
        ("records", pyarrow.int64()),
        ("newest_ms", pyarrow.int64()),
    ]
)
REPORT_SQL = "partition int, offset bigint, progress binary, records bigint, newest_ms bigint"

_RESTORE = "restore the topic, or start the pipeline again and accept that results are written twice"


@dataclass(frozen=True, kw_only=True)
class TransactionLimits:
    """Soft limits for a transaction: one Arrow batch may exceed them."""

    records: int = 50_000
    # Records of all output topics.
    emitted: int = 200_000
    # For all partitions of a task together.
    bytes: int = 32 * 1024**2


@dataclass(frozen=True, kw_only=True)
class CommitTask:
    """Travels to the workers. Called with the evaluated rows of its shares, it gives a report for each share.

    A report has the committed progress, also if another task wrote it. `records` and `newest_ms` (the time of the last
    record) count only what this task has written.
    """

    connection: Connection
    app: str
    changelog: str
    output_topics: OutputTopics
    generation: int
    owner: str
    limits: TransactionLimits = TransactionLimits()

    @property
    def driver(self) -> tuple[str, int]:
        """The driver that made this task, and which of its takeovers."""
        return self.owner, self.generation

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        spare_imports()
        yield from self.results(shares_of_task(), batches)

    def results(self, of_task: Shares, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """The reports for these shares."""
        _release(self)
        shares = {share.partition: share for share in of_task.shares}
        works = {partition: _PartitionWork(self, share, of_task.busy_tasks) for partition, share in shares.items()}
        # With several tasks, each may run in another worker next time: an id that moves is not worth keeping.
        keeps_ids = False
        try:
            for_each(works, lambda partition: works[partition].begin())
            for batch in batches:
                for partition, rows in _by_partition(batch):
                    works[partition].take(rows)
                _bound(works.values(), self.limits.bytes)
            yield from for_each(works, lambda partition: works[partition].finished()).values()
            keeps_ids = of_task.is_only_task
        finally:
            for work in works.values():
                work.leave(keeps_id=keeps_ids)


@dataclass(frozen=True, kw_only=True)
class _Held:
    """A transactional id that this worker keeps: the driver it was taken for, and the last progress under it."""

    app: str
    driver: tuple[str, int]
    transactions: Transactions
    stored: StoredProgress


# By id.
_HELD: dict[str, _Held] = {}


class _PartitionWork:
    """The work of a task on one source partition."""

    def __init__(self, task: CommitTask, share: Share, busy_tasks: int) -> None:
        self._task = task
        self._share = share
        self._busy_tasks = busy_tasks
        self._id = transactional_id(task.app, share.partition)
        # Removed here, so that a second attempt in this worker does not use it too.
        held = _HELD.pop(self._id, None)
        self._transactions = None if held is None else held.transactions
        self._known = None if held is None else held.stored
        self._buffer = TransactionBuffer(task.output_topics, share.partition, share.blame)
        self._is_continued = False
        self._is_whole = False
        self._records = 0
        self._newest_ms: int | None = None

    @property
    def _stored(self) -> StoredProgress:
        if self._known is None:
            raise RuntimeError("begin() reads the progress, and was not called")
        return self._known

    @property
    def held_bytes(self) -> int:
        return self._buffer.bytes

    def begin(self) -> None:
        task, share = self._task, self._share
        if self._known is None or self._known.offset != share.known:
            self.leave(keeps_id=False)
            self._take_id()
        if share.begin > self._stored.progress.next_offset:
            # The next takeover starts at the progress.
            raise HistoryLost(
                f"{task.output_topics.source}[{share.partition}] must be read from offset {share.begin}, but its "
                f"progress is {self._stored.progress.next_offset}: {task.changelog} has lost records"
            )

    def take(self, batch: pyarrow.RecordBatch) -> None:
        # The reader marks the end of a share.
        if batch.column("is_end")[-1].as_py():
            self._is_whole = True
            batch = batch.slice(0, batch.num_rows - 1)
        if not batch.num_rows:
            return
        if not self._is_continued:
            offsets, expected = batch.column("offset").to_numpy(), self._stored.progress.next_offset
            if offsets[-1] < expected:
                return
            if offsets[0] < expected:
                batch = batch.filter(pyarrow.array(offsets >= expected))
            self._is_continued = True
        self._buffer.add(batch)
        self._newest_ms = batch.column("timestamp")[-1].as_py()
        limits = self._task.limits
        if self._buffer.records >= limits.records or self._buffer.emitted >= limits.emitted:
            self.commit()

    def finished(self) -> pyarrow.RecordBatch:
        if not self._is_whole:
            raise LastwordError(
                f"{self._task.output_topics.source}[{self._share.partition}]: the reader stopped before offset "
                f"{self._share.end}"
            )
        # The whole share was read, including transaction markers at its end, which are no records.
        self._buffer.reach(self._share.end)
        if self._buffer.next_offset > self._stored.progress.next_offset:
            self.commit()
        row = {
            "partition": self._share.partition,
            "offset": self._stored.offset,
            "progress": self._stored.progress.to_json(),
            "records": self._records,
            "newest_ms": self._newest_ms,
        }
        return pyarrow.RecordBatch.from_pylist([row], schema=REPORT)

    def leave(self, *, keeps_id: bool) -> None:
        """Keeps the id for the worker's next task, or gives it up."""
        if self._transactions is None:
            return
        if keeps_id:
            task = self._task
            _HELD[self._id] = _Held(
                app=task.app, driver=task.driver, transactions=self._transactions, stored=self._stored
            )
        else:
            self._transactions.close()
        self._transactions = None

    def _take_id(self) -> None:
        # A task of a replaced driver must not take the id from its successor. This first read may be out of date.
        self._committed()
        # From now on no predecessor can commit, so the next read gets the final progress.
        batch_bytes = self._task.output_topics.batch_bytes
        self._transactions = Transactions(self._task.connection, self._id, batch_bytes=batch_bytes)
        self._known = self._committed()

    def _committed(self) -> StoredProgress:
        task, partition = self._task, self._share.partition
        try:
            stored = newest_progress(task.connection, task.changelog, partition, start=self._share.known)
        except PositionGone:
            stored = None
        if stored is None:
            raise SourceGap(f"{task.changelog}[{partition}] has lost its records: {_RESTORE}")
        refuse_newer(task.app, stored.progress, task.generation)
        return stored

    def commit(self) -> None:
        if self._transactions is None:
            raise RuntimeError("begin() takes the id, and was not called")
        task, partition = self._task, self._share.partition
        before = self._stored.progress
        progress = replace(self._buffer.after(before), most_tasks=max(before.most_tasks, self._busy_tasks))
        record = progress_record(task.changelog, partition, progress)
        offset = self._transactions.write(self._buffer.outgoing(), record)
        if offset <= self._stored.offset:
            raise SourceGap(
                f"{task.changelog}[{partition}] was deleted or emptied while the pipeline wrote to it: {_RESTORE}"
            )
        self._records += self._buffer.records
        self._known = StoredProgress(progress=progress, offset=offset)
        self._buffer = TransactionBuffer(task.output_topics, partition, self._share.blame)


def _release(task: CommitTask) -> None:
    """Gives up ids that this worker keeps for another driver of the app, or for an earlier takeover."""
    for name, held in list(_HELD.items()):
        if held.app == task.app and held.driver != task.driver:
            del _HELD[name]
            held.transactions.close()


def _bound(works: Collection[_PartitionWork], most_bytes: int) -> None:
    """Commits the largest buffer when all buffers together reach the limit of one transaction."""
    if sum(work.held_bytes for work in works) >= most_bytes:
        max(works, key=lambda work: work.held_bytes).commit()


def _by_partition(batch: pyarrow.RecordBatch) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The rows of a batch in their order, cut where the partition changes."""
    partitions = batch.column("partition").to_numpy()
    begins = [0, *(numpy.flatnonzero(numpy.diff(partitions)) + 1).tolist()]
    for begin, end in zip(begins, [*begins[1:], len(partitions)], strict=True):
        if end > begin:
            yield int(partitions[begin]), batch.slice(begin, end - begin)
