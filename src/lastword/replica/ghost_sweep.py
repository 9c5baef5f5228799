"""Ghosts: rows whose tombstone was compacted away before this replica could read it.

Kafka keeps a tombstone for at least delete.retention.ms after it was first cleaned. A replica that was away for longer
may never learn of a delete by reading on. So it reads the partition again from its start: a key without a live record
there gets no row. A record that was there when the pass began, and its tombstone, can't both vanish within
delete.retention.ms: after a quicker pass no ghost is left, and a slower pass is repeated.

A row can also be missing because a later record of its key has replaced it, so the sweep reads the records after the
position, too. Only a key that is overwritten and compacted twice within those milliseconds is then taken for a ghost;
its row is back as soon as its newest record is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from rocksdict import Rdict, WriteBatch, WriteOptions

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.replica.building.long_work import Stopped
from lastword.replica.folder import ReplicaFolder
from lastword.replica.store.apply_batch import Applied
from lastword.replica.store.column_family import ColumnFamily
from lastword.replica.store.database import store_options
from lastword.replica.store.store import Store

PASSES = 3
_KEYS_IN_MEMORY = 200_000
_GHOSTS_AT_ONCE = 10_000


def sweep(
    connection: Connection,
    store: Store,
    folder: ReplicaFolder,
    partition: int,
    *,
    retention_ms: int,
    stopping: threading.Event,
    keys_in_memory: int = _KEYS_IN_MEMORY,
    ghosts_at_once: int = _GHOSTS_AT_ONCE,
    read: Callable[..., Iterator[list[Record]]] = read_log,
) -> Iterator[Applied]:
    """Removes the ghosts of a partition, some at a time; the state of the partition says whether some may be left.

    A crash in between leaves fewer ghosts, and a state that asks for the sweep again. Where the partition has more keys
    than `keys_in_memory`, they are noted on disk.
    """
    topic, position = store.identity.topic, Position({partition: store.partitions[partition].position})
    for attempt in range(1, PASSES + 1):
        stopwatch = _Stopwatch(stopping)
        with folder.scratch() as scratch, closing(_LiveKeys(scratch, keys_in_memory)) as seen:
            for batch in read(connection, topic, partitions=[partition], stop=position, progress=stopwatch):
                seen.note((record.key, record.value is not None) for record in batch if record.key is not None)
            certain = stopwatch.elapsed_ms() <= retention_ms
            # A row may be missing because a later record, which is not read yet, has replaced it.
            for batch in read(connection, topic, partitions=[partition], start=position, progress=stopwatch):
                seen.note((record.key, True) for record in batch if record.key is not None)
            if certain or attempt == PASSES:
                ghosts = seen.missing(store.keys_of(partition))
                while some := list(islice(ghosts, ghosts_at_once)):
                    yield store.sweep(some, partition, store.partitions[partition])
                settled = store.partitions[partition]._replace(deletes_uncertain=not certain)
                store.apply([], {partition: settled})
        if certain:
            return


class _Stopwatch:
    """Runs from the first fetch of a read, as the callback for its progress; ends the read when `stopping` is set."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._began: int | None = None

    def __call__(self, _done: int, _total: int) -> None:
        if self._stopping.is_set():
            raise Stopped
        self._began = self._began or now_ms()

    def elapsed_ms(self) -> int:
        return now_ms() - (self._began or 0)


class _LiveKeys:
    """The keys that have a live record: in memory, and on disk if they are many.

    Not `building.newest_rows`: a sweep needs one bit of each key instead of its row, and looks keys up unsorted.
    """

    def __init__(self, scratch: Path, in_memory: int) -> None:
        self._scratch = scratch
        self._in_memory = in_memory
        self._recent: dict[bytes, bool] = {}
        self._db: Rdict | None = None
        self._older: ColumnFamily | None = None

    def note(self, keys: Iterable[tuple[bytes, bool]]) -> None:
        self._recent.update(keys)
        if len(self._recent) >= self._in_memory:
            self._spill()

    def missing(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        """The keys among these that have no live record."""
        for key in keys:
            live = self._recent.get(key)
            if live is None and self._older is not None:
                live = self._older.get(key) == b"1"
            if not live:
                yield key

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    def _spill(self) -> None:
        if self._db is None:
            self._db = Rdict(str(self._scratch), store_options())
            self._older = ColumnFamily(self._db)
            unlogged = WriteOptions()
            unlogged.disable_wal = True  # type: ignore[method-assign,assignment]  # the stub takes it for a method
            self._db.set_write_options(unlogged)
        batch = WriteBatch(raw_mode=True)
        for key, live in self._recent.items():
            batch.put(key, b"1" if live else b"0")
        self._db.write(batch)
        self._recent.clear()
