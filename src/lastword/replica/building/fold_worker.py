"""Folds some partitions of a topic into one sorted file of rows: a worker process, started by `rebuild`.

    python -m lastword.replica.building.fold_worker

One line of JSON on standard input is the job (never an argument: it may hold a password); lines of JSON on standard
output report progress and the result. However the owner ends, the worker ends, too.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from rocksdict import SstFileWriter

from lastword.core.clock import now_ms
from lastword.core.codecs import codec_named
from lastword.core.errors import (
    BadInput,
    ClusterUnreachable,
    DecodeError,
    DiskFull,
    LastwordError,
    NotFound,
    PositionGone,
    StoreDamaged,
)
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import ReadQueue, read_columns
from lastword.replica.building.newest_rows import NewestPackedRows, SortedRuns, SplitKey, in_key_order
from lastword.replica.store.column_family import explained
from lastword.replica.store.database import store_options
from lastword.replica.store.row_layout import as_poison, partition_in, value_in

_REPORT_EVERY_S = 0.1
# The memory of a worker before it has read a record.
_BARE_BYTES = 45 * 1024 * 1024
# The memory of a queued record in the client beside its bytes.
_QUEUED_RECORD_BYTES = 450

# The errors that a worker may report, by name: any other error is reported as LastwordError.
ERRORS = {
    kind.__name__: kind
    for kind in (LastwordError, BadInput, NotFound, PositionGone, ClusterUnreachable, DiskFull, StoreDamaged)
}


class Job(msgspec.Struct, kw_only=True, frozen=True):
    owner: int
    bootstrap_servers: str
    properties: dict[str, str | int | float | bool]
    patience_s: float
    topic: str
    start: dict[int, int]
    stop: dict[int, int]
    value_codec: str
    memory_bytes: int
    # Where the rows go, if there are any; runs are kept beside it meanwhile.
    file: str


class Passed(msgspec.Struct, tag=True, frozen=True):
    """The number of offsets that were read so far."""

    offsets: int


class FoldedPartition(msgspec.Struct, frozen=True):
    live_rows: int
    poison_rows: int
    # Of the last record, and the offset after it.
    leader_epoch: int
    epoch_end: int


class Folded(msgspec.Struct, tag=True, frozen=True):
    """The rows are in the file, safe on the disk; `began_ms` is just before the first fetch."""

    began_ms: int
    partitions: dict[int, FoldedPartition]


class Split(msgspec.Struct, tag=True, frozen=True):
    """Two of the partitions share a live key, so one file can't hold their rows."""


class Failed(msgspec.Struct, tag=True, frozen=True):
    kind: str
    text: str


WorkerMessage = Passed | Folded | Split | Failed


def queue_within(memory_bytes: int) -> ReadQueue:
    """A queue that takes a sixth of the memory, with the overhead of its records, or as little as possible."""
    half = memory_bytes // 12
    records = min(ReadQueue.records, max(1, half // _QUEUED_RECORD_BYTES))
    return ReadQueue(
        records=records,
        kbytes=min(ReadQueue.kbytes, max(256, half // 1024)),
        batch=min(ReadQueue.batch, max(2, records // 4)),
    )


def folded(job: Job, passed: Callable[[int, int], None]) -> Folded | Split:
    """The fold of the job's partitions, with the rows in its file."""
    # A sixth is for the queue, and another sixth for memory that allocators can't give back.
    room = job.memory_bytes * 2 // 3 - _BARE_BYTES
    newest, runs = NewestPackedRows(job.start), SortedRuns(Path(f"{job.file}.runs"))
    epochs = dict.fromkeys(job.start, (-1, 0))
    connection = Connection(
        bootstrap_servers=job.bootstrap_servers, properties=job.properties, patience_s=job.patience_s
    )
    start, stop, queue = Position(job.start), Position(job.stop), queue_within(job.memory_bytes)
    began_ms = now_ms()
    try:
        for batch in read_columns(connection, job.topic, start=start, stop=stop, queue=queue, progress=passed):
            for columns in batch:
                newest.fold(columns)
                epochs[columns.partition] = columns.leader_epoch, columns.offsets[-1] + 1
            if newest.estimated_bytes() > room:
                runs.add(newest.take())
                newest.keep_tombstones = True
        if runs:
            runs.add(newest.take())
        rows = runs.in_key_order(job.start) if runs else in_key_order(newest.take())
        live, poison = write_rows(rows, Path(job.file), job.value_codec)
    except SplitKey:
        return Split()
    finally:
        runs.remove()
    return Folded(began_ms, {p: FoldedPartition(live[p], poison[p], *epoch) for p, epoch in epochs.items()})


def write_rows(rows: Iterable[tuple[bytes, bytes]], file: Path, value_codec: str) -> tuple[Counter[int], Counter[int]]:
    """How many rows of each partition went into the file, and how many of them the codec can't read.

    A value is decoded only here, when it is known to be the newest of its key.
    """
    decode = codec_named(value_codec).decode
    live: Counter[int] = Counter()
    poison: Counter[int] = Counter()
    writer = SstFileWriter(store_options())
    writer.open(str(file))
    for key, row in rows:
        live[partition_in(row)] += 1
        try:
            decode(value_in(row))
            writer[key] = row
        except DecodeError:
            poison[partition_in(row)] += 1
            writer[key] = as_poison(row)
    if live:
        writer.finish()
    else:
        # RocksDB takes no empty file.
        file.unlink()
    return live, poison


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The owner died before it sent the job.
        os._exit(1)
    job = msgspec.json.decode(line, type=Job)
    threading.Thread(target=_end_with, args=(job.owner,), daemon=True).start()
    # Millions of objects and not one cycle: scanning them would cost a third of the time.
    gc.disable()
    try:
        _send(folded(job, _Progress()))
    except LastwordError as failure:
        kind = next(each.__name__ for each in type(failure).__mro__ if each.__name__ in ERRORS)
        _send(Failed(kind, str(failure)))
    except Exception as failure:  # for example a full disk: rocksdict has no narrower exception
        error = explained(failure, f"reading {job.topic} into {job.file}")
        _send(Failed(type(error).__name__, str(error)))
    # At once: giving back the memory would take time, and the process ends anyway.
    os._exit(0)


def _end_with(owner: int) -> None:
    # Not by the pipe alone: a process that the owner forked keeps our input open while it lives.
    while os.getppid() == owner and not select.select([0], [], [], 0.2)[0]:
        pass
    os._exit(1)


class _Progress:
    """Reports to the owner now and then."""

    def __init__(self) -> None:
        self._report_at = 0.0

    def __call__(self, offsets: int, total: int) -> None:
        if time.monotonic() >= self._report_at or offsets == total:
            _send(Passed(offsets))
            self._report_at = time.monotonic() + _REPORT_EVERY_S


def _send(message: WorkerMessage) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The owner is gone: nobody reads the message.
        os._exit(1)


if __name__ == "__main__":
    main()
