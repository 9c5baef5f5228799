"""The shares of a batch: a range of offsets for each partition of the source, read by Spark's workers.

Spark plans the batches of a pipeline once, and the shares travel beside the plan: planning the rules for every batch
would take longer than a small batch does.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import pyarrow
from pyspark import SparkContext, TaskContext

from lastword.core.errors import HistoryLost
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import topic_identity
from lastword.kafka.client.reading import Columns, ReadQueue, read_columns

SOURCE = pyarrow.schema(
    [
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.int64()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("plain", pyarrow.bool_()),
        ("is_end", pyarrow.bool_()),
    ]
)
SOURCE_SQL = "partition int, offset bigint, timestamp bigint, key binary, value binary, plain boolean, is_end boolean"

_PROPERTY = "lastword.pipeline.batch"
# Limits of the records that a worker has read and Spark has not taken yet.
_QUEUE = ReadQueue(records=20_000, kbytes=16 * 1024, batch=1000)


@dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """How many records a batch has at most, and how many it may have as one task."""

    # For each partition. The tasks bound the memory.
    partition_records: int = 100_000
    # Most of the cost of a small task does not depend on its records.
    one_task_records: int = 2_000


class Share(NamedTuple):
    """The offsets of a source partition that a batch reads.

    With a `blame` the records are rejected for that reason, and not evaluated.
    """

    partition: int
    begin: int
    end: int
    known: int  # where in the changelog the driver saw the partition's progress
    blame: str | None = None


class Shares(NamedTuple):
    shares: Sequence[Share]
    is_only_task: bool
    # How many tasks of the batch have records to read.
    busy_tasks: int = 1


@contextmanager
def batch_of(context: SparkContext, tasks: Sequence[Sequence[Share]]) -> Iterator[None]:
    """In the block, Spark jobs of this thread have these shares, task by task."""
    context.setLocalProperty(_PROPERTY, json.dumps(tasks))
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, None)  # type: ignore[arg-type]


def shares_of_task() -> Shares:
    """In a worker: the shares of this task."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this runs outside of a Spark task")
    tasks = json.loads(context.getLocalProperty(_PROPERTY))  # type: ignore[arg-type]
    mine = [Share(*share) for share in tasks[context.partitionId()]]
    return Shares(mine, is_only_task=len(tasks) == 1, busy_tasks=sum(map(bool, tasks)))


@dataclass(frozen=True, kw_only=True)
class SourceTask:
    """Sent to the workers: gives the committed records of the task's shares, each partition in offset order.

    `plain`: the value is UTF-8 text that ends with its only closing brace, which is cheaper to check here.
    After the records comes a row `is_end` for each share. To Arrow a stream that breaks off has ended: without that row
    the next step could not tell a failed reader from a finished one.
    """

    connection: Connection
    topic: str
    topic_id: str

    def __call__(self, numbers: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        spare_imports()
        # Read to the end, or Spark would not use this worker again.
        for _ in numbers:
            pass
        shares = shares_of_task().shares
        if not shares:
            return
        self._refuse_another_topic()
        start = Position({share.partition: share.begin for share in shares})
        stop = Position({share.partition: share.end for share in shares})
        for parts in read_columns(self.connection, self.topic, start=start, stop=stop, queue=_QUEUE):
            for columns in parts:
                yield record_batch(columns)
        yield ends_of(shares)

    def _refuse_another_topic(self) -> None:
        """Only for a second attempt, which may come long after the driver looked at the topic."""
        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            admin = self.connection.admin()
            if topic_identity(admin, self.topic) != self.topic_id:
                raise HistoryLost(f"{self.topic} was deleted and created again while it was read")


@cache
def spare_imports() -> None:
    """Once in a worker: Spark's workers collect garbage after every task, which costs 40 ms for all the modules."""
    gc.freeze()


def record_batch(columns: Columns) -> pyarrow.RecordBatch:
    count, values = len(columns.offsets), pyarrow.array(columns.values, pyarrow.binary())
    return pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.repeat(pyarrow.scalar(columns.partition, pyarrow.int32()), count),
            pyarrow.array(columns.offsets, pyarrow.int64()),
            pyarrow.array(columns.timestamps, pyarrow.int64()),
            pyarrow.array(columns.keys, pyarrow.binary()),
            values,
            pyarrow.array(_plain(columns.values, values), pyarrow.bool_()),
            pyarrow.repeat(pyarrow.scalar(value=False), count),
        ],
        schema=SOURCE,
    )


def ends_of(shares: Iterable[Share]) -> pyarrow.RecordBatch:
    """The rows that mark the ends of these shares."""
    rows = [{"partition": share.partition, "offset": share.end, "plain": False, "is_end": True} for share in shares]
    return pyarrow.RecordBatch.from_pylist(rows, SOURCE)


def _plain(values: list[bytes | None], as_arrow: pyarrow.Array) -> list[bool]:
    is_text = _is_text(as_arrow)
    return [
        value is not None and 0 <= value.find(b"}") == len(value) - 1 and (is_text or _is_text(pyarrow.array([value])))
        for value in values
    ]


def _is_text(values: pyarrow.Array) -> bool:
    try:
        values.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return False
    return True
