"""What a task does with evaluated records: it writes the results of a source partition together with its progress.

It runs in a Python worker of Spark's, maybe twice, maybe beside a second attempt, maybe for a driver that has been
replaced. So it trusts only what is committed: it takes the partition's transactional id, which ends whoever had it,
reads the progress, passes over what lies before it, and commits every portion with the progress after it.

The id stays with the worker: when its next task goes on where this one ended, nobody has written in between, or the
commit fails. So most tasks of a quiet pipeline take and read nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy
import pyarrow

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

# A transaction has about so much at most, and one batch of Spark's more; of all partitions of a task so much is held.
_PORTION_RECORDS = 50_000
_PORTION_EMITTED = 200_000
_PORTION_BYTES = 32 * 1024**2

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


@dataclass(frozen=True, kw_only=True)
class CommitTask:
    """Travels to the workers. Called with the evaluated rows of its shares it gives a report of each.

    A report has the progress as it is committed, whoever wrote it; `records` and `newest_ms` (the time of the last
    record) are of what this task has written.
    """

    connection: Connection
    app: str
    changelog: str
    outlet: OutputTopics
    generation: int
    owner: str

    @property
    def driver(self) -> tuple[str, int]:
        """Which start of which driver it is of."""
        return self.owner, self.generation

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        spare_imports()
        yield from self.results(shares_of_task(), batches)

    def results(self, of_task: Shares, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """The same, for shares that are given."""
        _release(self)
        shares = {share.partition: share for share in of_task.shares}
        works = {partition: _PartitionWork(self, share, of_task.busy_tasks) for partition, share in shares.items()}
        # Of several tasks each may be in another worker next time, and ids that move are not worth keeping.
        keeps_ids = False
        try:
            for_each(works, lambda partition: works[partition].begin())
            for batch in batches:
                for partition, rows in _by_partition(batch):
                    works[partition].take(rows)
                _bound(works.values())
            yield from for_each(works, lambda partition: works[partition].finished()).values()
            keeps_ids = of_task.is_only_task
        finally:
            for work in works.values():
                work.leave(keeps_id=keeps_ids)


@dataclass(frozen=True, kw_only=True)
class _Held:
    """A partition's id, in this worker's hands, for whom it was taken, and what was committed last under it."""

    app: str
    driver: tuple[str, int]
    transactions: Transactions
    kept: StoredProgress


# By id.
_HELD: dict[str, _Held] = {}


class _PartitionWork:
    """The work of a task on one source partition."""

    def __init__(self, task: CommitTask, share: Share, busy_tasks: int) -> None:
        self._task = task
        self._share = share
        self._busy_tasks = busy_tasks
        self._id = transactional_id(task.app, share.partition)
        # Taken out, so that a second attempt in this worker would not use it, too.
        held = _HELD.pop(self._id, None)
        self._transactions = None if held is None else held.transactions
        self._known = None if held is None else held.kept
        self._portion = TransactionBuffer(task.outlet, share.partition, share.blame)
        self._is_continued = False
        self._is_whole = False
        self._records = 0
        self._newest_ms: int | None = None

    @property
    def _kept(self) -> StoredProgress:
        if self._known is None:
            raise RuntimeError("its progress is read when it begins")
        return self._known

    @property
    def held_bytes(self) -> int:
        return self._portion.bytes

    def begin(self) -> None:
        task, share = self._task, self._share
        if self._known is None or self._known.offset != share.known:
            self.leave(keeps_id=False)
            self._take_id()
        if share.begin > self._kept.progress.next_offset:
            # The next takeover begins where the progress is.
            raise HistoryLost(
                f"{task.outlet.source}[{share.partition}] is to be read from offset {share.begin} on, and its progress "
                f"says {self._kept.progress.next_offset}: {task.changelog} has lost records"
            )

    def take(self, batch: pyarrow.RecordBatch) -> None:
        # The reader's last word about this share.
        if batch.column("is_end")[-1].as_py():
            self._is_whole = True
            batch = batch.slice(0, batch.num_rows - 1)
        if not batch.num_rows:
            return
        if not self._is_continued:
            offsets, expected = batch.column("offset").to_numpy(), self._kept.progress.next_offset
            if offsets[-1] < expected:
                return
            if offsets[0] < expected:
                batch = batch.filter(pyarrow.array(offsets >= expected))
            self._is_continued = True
        self._portion.add(batch)
        self._newest_ms = batch.column("timestamp")[-1].as_py()
        if self._portion.records >= _PORTION_RECORDS or self._portion.emitted >= _PORTION_EMITTED:
            self.commit()

    def finished(self) -> pyarrow.RecordBatch:
        if not self._is_whole:
            raise LastwordError(
                f"{self._task.outlet.source}[{self._share.partition}]: its reader ended before offset {self._share.end}"
            )
        # All of the share was read: ends of transactions are passed, too.
        self._portion.reach(self._share.end)
        if self._portion.next_offset > self._kept.progress.next_offset:
            self.commit()
        row = {
            "partition": self._share.partition,
            "offset": self._kept.offset,
            "progress": self._kept.progress.to_json(),
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
            _HELD[self._id] = _Held(app=task.app, driver=task.driver, transactions=self._transactions, kept=self._kept)
        else:
            self._transactions.close()
        self._transactions = None

    def _take_id(self) -> None:
        # A task of a driver that was replaced must not take the id from its successor's. This answer may be an old one.
        self._committed()
        # From now on no predecessor can commit, so what is read next is the last word.
        batch_bytes = self._task.outlet.batch_bytes
        self._transactions = Transactions(self._task.connection, self._id, batch_bytes=batch_bytes)
        self._known = self._committed()

    def _committed(self) -> StoredProgress:
        task, partition = self._task, self._share.partition
        try:
            kept = newest_progress(task.connection, task.changelog, partition, start=self._share.known)
        except PositionGone:
            kept = None
        if kept is None:
            raise SourceGap(f"{task.changelog}[{partition}] has lost its records: was the topic deleted or emptied?")
        refuse_newer(task.app, kept.progress, task.generation)
        return kept

    def commit(self) -> None:
        if self._transactions is None:
            raise RuntimeError("its id is taken when it begins")
        task, partition = self._task, self._share.partition
        before = self._kept.progress
        progress = replace(self._portion.after(before), most_tasks=max(before.most_tasks, self._busy_tasks))
        record = progress_record(task.changelog, partition, progress)
        offset = self._transactions.write(self._portion.outgoing(), record)
        if offset <= self._kept.offset:
            raise SourceGap(f"{task.changelog}[{partition}] was deleted or emptied while it was written to")
        self._records += self._portion.records
        self._known = StoredProgress(progress=progress, offset=offset)
        self._portion = TransactionBuffer(task.outlet, partition, self._share.blame)


def _release(task: CommitTask) -> None:
    """Ids that were kept for another driver, or another start of it, are of no more use."""
    for name, held in list(_HELD.items()):
        if held.app == task.app and held.driver != task.driver:
            del _HELD[name]
            held.transactions.close()


def _bound(works: Collection[_PartitionWork]) -> None:
    """What is held for all partitions together stays within what one transaction may have."""
    if sum(work.held_bytes for work in works) >= _PORTION_BYTES:
        max(works, key=lambda work: work.held_bytes).commit()


def _by_partition(batch: pyarrow.RecordBatch) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The rows of a batch, as they follow each other, those of one partition at a time."""
    partitions = batch.column("partition").to_numpy()
    begins = [0, *(numpy.flatnonzero(numpy.diff(partitions)) + 1).tolist()]
    for begin, end in zip(begins, [*begins[1:], len(partitions)], strict=True):
        if end > begin:
            yield int(partitions[begin]), batch.slice(begin, end - begin)
