"""The store: a table's rows and its position in one RocksDB, committed together.

One WriteBatch carries rows, positions and counts, so no crash can part them: after any kill the rows are the fold of
the records before the position. Rows scan in key order. One thread writes; any number of threads read. Bytes that
differ from the written ones are an error (StoreDamaged), never a shorter or another answer; the store must then be
rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
from rocksdict import IngestExternalFileOptions, WriteBatch

from lastword.core.errors import DiskFull, LastwordError, ReplicaUnusable, StoreDamaged
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.replica.store.apply_batch import Applied, BatchEdit
from lastword.replica.store.column_family import FamilyCursor, judged
from lastword.replica.store.database import PARTITION_STATES, Database
from lastword.replica.store.identity import Identity, WrittenFormat, refuse_another_format
from lastword.replica.store.position_ledger import Ledger
from lastword.replica.store.row_layout import (
    PARTITION,
    CommittedState,
    PartitionState,
    pack_partition_state,
    partition_and_offset_in,
    unpack_partition_state,
    unpack_row,
    unpack_rows,
)

_TABLE = b"table"
_LEDGER = b"ledger"

_Shape = TypeVar("_Shape", Identity, WrittenFormat)


class Store:
    """An open store. `readable` says whether the value codec can read some bytes."""

    def __init__(
        self,
        folder: Path,
        *,
        readable: Callable[[bytes], bool],
        most_last_good_bytes: int = 64 * 1024 * 1024,
        on_damage: Callable[[Store, str], None] | None = None,
    ) -> None:
        """Opens the store, or makes an empty store if the folder has none; StoreDamaged if the store is not whole."""
        self.folder = folder
        self.readable = readable
        self._most_last_good_bytes = most_last_good_bytes
        # The first damage that any reader or writer found; `on_damage` is called with it. As text: an error would keep
        # alive the frames that it went through, and with them this store.
        self.damage: str | None = None
        # Whether RocksDB failed for another reason. After a failed write it takes no writes until it is opened again.
        self.has_failed = False
        self._on_damage = on_damage
        # Records applied since the store was opened.
        self.applied_records = 0
        self.database = Database(folder, self._judged)
        self.rows = self.database.rows
        try:
            self._refuse_another_format()
            self.database.inventory.keep_now()
            self.committed_state = self._read_state()
            self._position_of: tuple[CommittedState | None, Position] = None, Position()
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> Identity:
        raw = self.database.partition_states.get(_TABLE)
        if raw is None:
            raise self._judged(Exception("Corruption: the store does not say which table it is a copy of"))
        return self._identity_as(Identity, raw)

    def _identity_as(self, shape: type[_Shape], raw: bytes) -> _Shape:
        try:
            return msgspec.json.decode(raw, type=shape)
        except msgspec.MsgspecError as damage:
            raise self._judged(Exception(f"Corruption: the entry that names the table is damaged: {damage}")) from None

    @cached_property
    def topic_id(self) -> str:
        """The topic's id, which never changes for a store; cached, because every read over HTTP asks for it."""
        return self.identity.topic_id

    def declare(self, identity: Identity) -> None:
        self.database.partition_states.put(_TABLE, msgspec.json.encode(identity))

    @property
    def ledger(self) -> Ledger:
        raw = self.database.partition_states.get(_LEDGER)
        entries = msgspec.json.decode(raw, type=list[tuple[int, str]]) if raw is not None else []
        return Ledger((moment, Position.parse(position)) for moment, position in entries)

    def save_ledger(self, ledger: Ledger) -> None:
        entries = [(moment, str(position)) for moment, position in ledger.entries]
        self.database.partition_states.put(_LEDGER, msgspec.json.encode(entries))

    @property
    def partitions(self) -> Mapping[int, PartitionState]:
        return self.committed_state.partitions

    @property
    def split_keys(self) -> int:
        return self.committed_state.split_keys

    @property
    def position(self) -> Position:
        committed, position = self._position_of
        if committed is not self.committed_state:
            # Cached until the next commit, because every read over HTTP asks for it.
            committed = self.committed_state
            position = Position({partition: state.position for partition, state in committed.partitions.items()})
            self._position_of = committed, position
        return position

    @property
    def log_start(self) -> Position:
        """The rows are the fold of the records from here up to the position."""
        return Position({partition: state.log_start for partition, state in self.partitions.items()})

    @property
    def topic_log_start(self) -> Position:
        """The log start at the last check; the next pass over all rows removes older rows."""
        return Position({partition: state.topic_log_start for partition, state in self.partitions.items()})

    @property
    def poison_rows(self) -> int:
        return sum(state.poison_rows for state in self.partitions.values())

    def __len__(self) -> int:
        """The number of live keys, exactly."""
        partitions, _, hidden_rows, _ = self.committed_state
        return sum(state.live_rows for state in partitions.values()) - hidden_rows

    def get(self, key: bytes) -> Record | None:
        raw = self.rows.get(key)
        return None if raw is None else unpack_row(key, raw)

    def last_good(self, key: bytes) -> bytes | None:
        """The last value that could be read, for a key whose newest value can't be. Not part of the table."""
        return self.database.last_good_values.get(key)

    def scan(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Record]:
        """Rows with start <= key < end in key order, as they were when the scan began."""
        packed = self.packed_rows(start, end)
        return (unpack_row(key, raw) for key, raw in packed)

    def packed_rows(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The same as keys and packed rows; StoreDamaged if all rows are read and their number is not `len`."""
        with self.database.turn:
            expected = len(self) if start == b"" and end is None else None
            return self.rows.items(start, end, expected=expected)

    def whole_cursor(self) -> tuple[FamilyCursor, Position, int]:
        """A cursor over all rows of this moment, with their position and their number."""
        with self.database.turn:
            return self.rows.cursor(), self.position, len(self)

    def keys_of(self, partition: int) -> Iterator[bytes]:
        """In key order, the keys that have a live row in the partition, shown or not."""
        return (key for key, rows in self.live_rows() if any(each == partition for each, _ in rows))

    def live_rows(self, start: bytes = b"") -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
        """In key order from a key on: (key, the partition and offset of each live row), the shown row last."""
        # A key with hidden rows has a shown row, too.
        hidden_rows = self.database.hidden_rows.items(start) if self.split_keys else iter(())
        hidden = next(hidden_rows, None)
        for key, raw in self.rows.items(start):
            rows = [partition_and_offset_in(raw)]
            if hidden is not None and hidden[0] == key:
                rows = [*map(partition_and_offset_in, unpack_rows(hidden[1])), *rows]
                hidden = next(hidden_rows, None)
            yield key, rows

    def apply(self, records: Sequence[Record], partitions: Mapping[int, PartitionState]) -> Applied:
        """Folds the records in and takes the new states of the partitions, in one step.

        Records before the present position are skipped, so that applying a batch twice changes nothing. The counts in
        `partitions` are ignored: the store counts its rows itself.
        """
        positions = {partition: state.position for partition, state in self.partitions.items()}
        fresh = [r for r in records if r.key is not None and r.offset >= positions.get(r.partition, 0)]
        self.applied_records += len(fresh)
        return self._committed(fresh, partitions)

    def sweep(self, ghosts: Sequence[bytes], partition: int, state: PartitionState) -> Applied:
        """Removes the partition's rows of these keys: their tombstones are gone from the log."""
        tombstones = [Record(key, None, partition, state.position - 1, state.caught_up_at) for key in ghosts]
        return self._committed(tombstones, {partition: state._replace(swept_at=state.position)})

    def remove_expired(self, expired: Sequence[tuple[int, bytes]], log_starts: Mapping[int, int]) -> Applied:
        """Removes the rows of these (partition, key), whose records have left the log at its start.

        `log_starts` comes with the last rows of a pass: by partition the log start below which no row is left.
        """
        partitions = self.partitions
        tombstones = [
            Record(key, None, p, partitions[p].position - 1, partitions[p].caught_up_at) for p, key in expired
        ]
        moved = {p: partitions[p]._replace(swept_at=partitions[p].position) for p, _ in expired}
        for partition, start in log_starts.items():
            state = moved.get(partition, partitions[partition])
            moved[partition] = state._replace(log_start=max(state.log_start, start))
        return self._committed(tombstones, moved)

    def ingest(self, files: Sequence[Path], partitions: Mapping[int, PartitionState]) -> None:
        """Fills an empty store with sorted files of packed rows; `partitions` have the counts of these rows.

        No key may be in two files: only one of its rows would be left, and `count_keys` would be less than `len`.
        """
        if files:
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            self.rows.ingest_external_file([str(file) for file in files], options)
        batch = WriteBatch(raw_mode=True)
        for partition, state in partitions.items():
            batch.put(PARTITION.pack(partition), pack_partition_state(state), self.database.handles[PARTITION_STATES])
        self._commit(batch, CommittedState(dict(partitions)))

    def count_keys(self) -> int:
        return self.rows.count()

    def flush(self) -> None:
        """Everything so far onto the disk."""
        self.database.flush()

    def close(self) -> None:
        self.database.close()

    def _committed(self, records: Sequence[Record], partitions: Mapping[int, PartitionState]) -> Applied:
        edit = BatchEdit(
            self.database,
            self.committed_state,
            readable=self.readable,
            most_last_good_bytes=self._most_last_good_bytes,
        )
        applied = edit.fold(records)
        edit.move(partitions)
        self._commit(*edit.result())
        return applied

    def _commit(self, batch: WriteBatch, state: CommittedState) -> None:
        with self.database.turn:
            self.database.write(batch)
            # Only now: the position that a reader sees must never be ahead of the rows.
            self.committed_state = state
        # The rows are committed: on a full disk the note stays an older one, which asks for less.
        with suppress(OSError):
            self.database.inventory.keep()

    def _judged(self, failure: Exception) -> LastwordError:
        """The error for a failure of RocksDB; the first damage is reported to the owner of the store, too."""
        error = judged(failure)
        # Without the folder: clients see this text, and the folder is not for them.
        reason = str(error).replace(f"{self.folder}/", "")
        self.has_failed = self.has_failed or not isinstance(error, StoreDamaged)
        if isinstance(error, DiskFull):
            return DiskFull(f"no space is left for {self.folder} ({reason}): free some")
        if isinstance(error, ReplicaUnusable):
            return ReplicaUnusable(f"{self.folder} is still read by an unfinished scan: end that first ({reason})")
        if not isinstance(error, StoreDamaged):
            return LastwordError(f"{self.folder}: {reason}")
        if self.damage is None:
            self.damage = reason
            if self._on_damage is not None:
                self._on_damage(self, reason)
        return StoreDamaged(reason)

    def _refuse_another_format(self) -> None:
        """To be called before anything else is read: only the entry with the format is the same in every format."""
        raw = self.database.partition_states.get(_TABLE)
        if raw is not None:
            refuse_another_format(self.folder, self._identity_as(WrittenFormat, raw).format)

    def _read_state(self) -> CommittedState:
        partitions = {
            PARTITION.unpack(key)[0]: unpack_partition_state(raw)
            for key, raw in self.database.partition_states.items()
            if key not in (_TABLE, _LEDGER)
        }
        hidden = [len(unpack_rows(raw)) for _, raw in self.database.hidden_rows.items()]
        last_good_bytes = sum(len(raw) for _, raw in self.database.last_good_values.items())
        return CommittedState(partitions, len(hidden), sum(hidden), last_good_bytes)
