"""One worker's share of reading: some partitions of a topic, folded into sorted runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import ReadQueue, read_columns
from lastword.replica.building.newest_rows import RUN_ROWS, NewestPackedRows, layers
from lastword.replica.building.sorted_runs import RunsWriter
from lastword.replica.building.tasks import Folded, FoldedPartition, FoldTask

# The memory of a worker before it has read a record.
BARE_BYTES = 45 * 1024 * 1024
# The memory of a queued record in the client beside its bytes.
_QUEUED_RECORD_BYTES = 450
# A merge reads a part of each run at a time: larger logs make larger runs, where memory allows.
_MOST_RUNS = 64


def folded(task: FoldTask, passed: Callable[[int, int], None]) -> Folded:
    """The fold of the task's partitions, with the rows in its file of runs."""
    room = room_within(task.memory_bytes)
    start, stop = Position(task.start), Position(task.stop)
    to_read = sum(stop[p] - start[p] for p in stop)
    newest = NewestPackedRows(task.start, run_rows=max(RUN_ROWS, to_read // _MOST_RUNS))
    runs, entries = RunsWriter(Path(task.runs_file)), Counter[int]()
    epochs = dict.fromkeys(task.start, (-1, 0))
    connection = Connection(
        bootstrap_servers=task.bootstrap_servers, properties=task.properties, patience_s=task.patience_s
    )

    def add_run() -> None:
        rows = newest.take()
        entries.update({partition: len(of_partition) for partition, of_partition in rows.items()})
        for layer in layers(rows):
            runs.add(layer)

    def progress(offsets: int, _total: int) -> None:
        passed(offsets, entries.total() + len(newest))

    began_ms = now_ms()
    queue = queue_within(task.memory_bytes)
    for batch in read_columns(connection, task.topic, start=start, stop=stop, queue=queue, progress=progress):
        for columns in batch:
            newest.fold(columns)
            epochs[columns.partition] = columns.leader_epoch, columns.offsets[-1] + 1
        if newest.is_run(room):
            add_run()
    add_run()
    runs.close()
    return Folded(began_ms, {p: FoldedPartition(entries[p], *epoch) for p, epoch in epochs.items()})


def room_within(memory_bytes: int) -> int:
    """The memory for rows."""
    # A sixth is for the queue, and another sixth for memory that allocators can't give back.
    return max(memory_bytes // 8, memory_bytes * 2 // 3 - BARE_BYTES)


def queue_within(memory_bytes: int) -> ReadQueue:
    """A queue that takes a sixth of the memory, with the overhead of its records, or as little as possible."""
    half = memory_bytes // 12
    records = min(ReadQueue.records, max(1, half // _QUEUED_RECORD_BYTES))
    return ReadQueue(
        records=records,
        kbytes=min(ReadQueue.kbytes, max(256, half // 1024)),
        batch=min(ReadQueue.batch, max(2, records // 4)),
    )
