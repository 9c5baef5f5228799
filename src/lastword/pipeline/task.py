"""What a task does with the evaluated records of one source partition: write their results and the progress together.

It runs in a Python worker of Spark's, maybe twice, maybe beside a second attempt, maybe for a driver that has been
replaced. So it trusts only what is committed: it takes the partition's transactional id, which ends whoever had it,
reads the progress, passes over what lies before it, and commits every portion with the progress after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow

from lastword.core.errors import HistoryLost, PositionGone, SourceGap
from lastword.kafka.connection import Connection
from lastword.kafka.reading import read_to_end
from lastword.kafka.transactions import Transactions
from lastword.pipeline.portion import Outlet, Portion
from lastword.pipeline.progress import Kept, newest_progress, progress_record, refuse_successor, transactional_id

# A transaction has about so much at most, and one batch of Spark's more.
_PORTION_RECORDS = 50_000
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
class PartitionTask:
    """Travels to the workers. Called with the evaluated rows of one partition it gives a report of one row.

    The report has the progress as it is committed, whoever wrote it; `records` and `newest_ms` (the time of the last
    record) are of what this task has written.
    """

    connection: Connection
    app: str
    changelog: str
    outlet: Outlet
    generation: int
    owner: str
    known: Mapping[int, int]  # of each source partition: where in the changelog the driver has seen its progress

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        work = _Work(self, first.column("partition")[0].as_py())
        work.take(first)
        for batch in filled:
            work.take(batch)
        yield work.finished()


class _Work:
    def __init__(self, task: PartitionTask, partition: int) -> None:
        self._task = task
        self._partition = partition
        # A task of a driver that was replaced must not take the id from its successor's. This answer may be an old one.
        self._committed()
        # From now on no predecessor can commit, so what is read next is the last word.
        self._transactions = Transactions(
            task.connection, transactional_id(task.app, partition), batch_bytes=task.outlet.batch_bytes
        )
        self._kept = self._committed()
        self._portion = Portion(task.outlet, partition)
        self._is_continued = False
        self._records = 0
        self._newest_ms: int | None = None

    def take(self, batch: pyarrow.RecordBatch) -> None:
        progress = self._kept.progress
        if not self._is_continued:
            offsets = batch.column("offset").to_numpy()
            if offsets[-1] < progress.next_offset:
                return
            if offsets[0] < progress.next_offset:
                batch = batch.filter(pyarrow.array(offsets >= progress.next_offset))
            self._refuse_gap(progress.next_offset, batch.column("offset")[0].as_py())
            self._is_continued = True
        self._portion.add(batch)
        self._newest_ms = batch.column("timestamp")[-1].value // 1000
        if self._portion.records >= _PORTION_RECORDS or self._portion.bytes >= _PORTION_BYTES:
            self._commit()

    def finished(self) -> pyarrow.RecordBatch:
        if self._portion.records:
            self._commit()
        self._transactions.close()
        row = {
            "partition": self._partition,
            "offset": self._kept.offset,
            "progress": self._kept.progress.to_json(),
            "records": self._records,
            "newest_ms": self._newest_ms,
        }
        return pyarrow.RecordBatch.from_pylist([row], schema=REPORT)

    def _committed(self) -> Kept:
        task, where = self._task, f"{self._task.changelog}[{self._partition}]"
        try:
            kept = newest_progress(task.connection, task.changelog, self._partition, start=task.known[self._partition])
        except PositionGone:
            kept = None
        if kept is None:
            raise SourceGap(f"{where} has lost its records: was the topic deleted or emptied?")
        refuse_successor(task.app, kept.progress, owner=task.owner, generation=task.generation)
        return kept

    def _refuse_gap(self, expected: int, found: int) -> None:
        """Offsets between the two must be nobody's: ends of transactions, or what compaction took."""
        if found == expected:
            return
        task = self._task
        try:
            first = next(read_to_end(task.connection, task.outlet.source, self._partition, start=expected), None)
            is_whole = first is None or first.offset >= found
        except PositionGone:
            is_whole = False
        if not is_whole:
            # The next takeover tells what can be done, if it is still so then.
            raise HistoryLost(
                f"{task.outlet.source}[{self._partition}]: the records from offset {expected} up to {found} were "
                "not read, and are gone or came later"
            )

    def _commit(self) -> None:
        progress = self._portion.after(self._kept.progress)
        record = progress_record(self._task.changelog, self._partition, progress)
        offset = self._transactions.write(self._portion.outgoing, record)
        self._records += self._portion.records
        self._kept = Kept(progress=progress, offset=offset)
        self._portion = Portion(self._task.outlet, self._partition)
