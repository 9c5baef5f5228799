"""The store: a table's rows and its position in one RocksDB, committed together.

Column families:

    rows    key -> the row that is shown
    others  key -> the live rows of that key in other partitions, which are not shown
    kept    key -> the last value this replica could read, of a key whose newest value it can't
    places  partition (4 bytes) -> its place; "table" -> what this is a copy of; "ledger" -> where it stood when

One WriteBatch carries rows, places and counts, so no crash can part them: after any kill the rows are the fold of
the records before the position. Rows scan in key order. One thread writes; any number read. Bytes that are not what
was written are an error (StoreDamaged), never a shorter or another answer; the store then is to be built again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import msgspec
from rocksdict import BlockBasedOptions, Cache, DbClosedError, IngestExternalFileOptions, Options, Rdict, WriteBatch

from lastword.core.errors import DiskFull, LastwordError, ReplicaUnusable, StoreDamaged
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.replica.store.apply_batch import Applied, BatchEdit
from lastword.replica.store.column_family import ColumnFamily, judged
from lastword.replica.store.file_inventory import InventoryNote, what_is_missing
from lastword.replica.store.listing import Listing
from lastword.replica.store.position_ledger import Ledger
from lastword.replica.store.row_layout import (
    FORMAT,
    PARTITION,
    CommittedState,
    PartitionPlace,
    pack_place,
    partition_and_offset_in,
    unpack_place,
    unpack_row,
    unpack_rows,
)

_TABLE = b"table"
_LEDGER = b"ledger"
_FAMILIES = ("rows", "others", "kept", "places")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which table a store is a copy of."""

    topic: str
    topic_id: str
    cluster_id: str
    key_codec: str
    value_codec: str
    delete_retention_ms: int
    format: int = FORMAT


class OlderFormat(ReplicaUnusable):
    """The store was written by an older lastword: it is built again from the topic."""


class Store:
    """An open store. `readable` says whether the value codec can read some bytes."""

    def __init__(
        self,
        folder: Path,
        *,
        readable: Callable[[bytes], bool],
        last_good_bytes: int = 64 * 1024 * 1024,
        on_damage: Callable[[Store, str], None] | None = None,
    ) -> None:
        """Opens the store, or makes an empty one in a folder that has none; StoreDamaged where it is not whole."""
        self.folder = folder
        self.readable = readable
        self.last_good_bytes = last_good_bytes
        # What was found, at any time, by anyone who read or wrote here; `on_damage` is called with the first of it.
        # As text: an error would keep alive the frames it went through, and with them this store.
        self.damage: str | None = None
        # Whether RocksDB failed for another reason: after a write that failed it takes no more until opened again.
        self.has_failed = False
        self._on_damage = on_damage
        # Since it was opened.
        self.applied_records = 0
        self.db = self._opened()
        self._inventory = InventoryNote(folder)
        # Held while a commit changes the rows and what is told of them, so that nobody counts the one by the other.
        self._turn = threading.RLock()
        self.rows, self.others, self.kept, self._places_family = (
            ColumnFamily(self.db.get_column_family(name), self._judged, self._turn) for name in _FAMILIES
        )
        self.handles = {name: self.db.get_column_family_handle(name) for name in _FAMILIES}
        try:
            self._refuse_another_format()
            self._inventory.keep_now()
            hidden = [len(unpack_rows(raw)) for _, raw in self.others.items()]
            self.standing = CommittedState(self._read_places(), len(hidden), sum(hidden))
            self._at: tuple[CommittedState | None, Position] = None, Position()
            self.kept_bytes = sum(len(raw) for _, raw in self.kept.items())
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> Identity:
        raw = self._places_family.get(_TABLE)
        if raw is None:
            raise self._judged(Exception("Corruption: the store does not say which table it is of"))
        return Identity(**msgspec.json.decode(raw))

    @cached_property
    def topic_id(self) -> str:
        """The topic's id, which never changes here; kept, because every read over HTTP asks for it."""
        return self.identity.topic_id

    def declare(self, identity: Identity) -> None:
        self._places_family.put(_TABLE, msgspec.json.encode(asdict(identity)))

    @property
    def ledger(self) -> Ledger:
        raw = self._places_family.get(_LEDGER)
        told = msgspec.json.decode(raw, type=list[tuple[int, str]]) if raw is not None else []
        return Ledger((moment, Position.parse(position)) for moment, position in told)

    def keep(self, ledger: Ledger) -> None:
        told = [(moment, str(position)) for moment, position in ledger.entries]
        self._places_family.put(_LEDGER, msgspec.json.encode(told))

    @property
    def places(self) -> Mapping[int, PartitionPlace]:
        return self.standing.places

    @property
    def split_keys(self) -> int:
        return self.standing.split_keys

    @property
    def position(self) -> Position:
        standing, position = self._at
        if standing is not self.standing:
            # Kept until the next commit, because every read over HTTP asks for it.
            standing = self.standing
            position = Position({partition: place.position for partition, place in standing.places.items()})
            self._at = standing, position
        return position

    @property
    def log_start(self) -> Position:
        """The rows are the fold of the records from here up to the position."""
        return Position({partition: place.log_start for partition, place in self.places.items()})

    @property
    def topic_log_start(self) -> Position:
        """Where the log started at the last look; rows from before it leave in the next pass over all rows."""
        return Position({partition: place.topic_log_start for partition, place in self.places.items()})

    @property
    def poison_rows(self) -> int:
        return sum(place.poison_rows for place in self.places.values())

    def __len__(self) -> int:
        """The number of live keys, exactly."""
        places, _, hidden_rows = self.standing
        return sum(place.live_rows for place in places.values()) - hidden_rows

    def get(self, key: bytes) -> Record | None:
        raw = self.rows.get(key)
        return None if raw is None else unpack_row(key, raw)

    def last_good(self, key: bytes) -> bytes | None:
        """The last value this replica could read, where the newest one can't be; local help, not part of the table."""
        return self.kept.get(key)

    def scan(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Record]:
        """Rows with start <= key < end in key order, as they were when the scan began."""
        packed = self.packed_rows(start, end)
        return (unpack_row(key, raw) for key, raw in packed)

    def packed_rows(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The same as keys and packed rows; where all rows are read, their number is that which the store tells."""
        with self._turn:
            expected = len(self) if start == b"" and end is None else None
            return self.rows.items(start, end, expected=expected)

    def listing(self) -> Listing:
        """All rows as they are now, for who takes them a slice at a time."""
        with self._turn:
            return Listing(self.rows.cursor(), self.position, expected=len(self))

    def keys_of(self, partition: int) -> Iterator[bytes]:
        """In key order, the keys that have a live row in the partition, shown or not."""
        return (key for key, rows in self.live_rows() if any(found == partition for found, _ in rows))

    def live_rows(self, start: bytes = b"") -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
        """In key order from a key on: (key, the partition and offset of each live row), the one that is shown last."""
        # A key that has hidden rows has one that is shown.
        others = self.others.items(start) if self.split_keys else iter(())
        hidden = next(others, None)
        for key, raw in self.rows.items(start):
            rows = [partition_and_offset_in(raw)]
            if hidden is not None and hidden[0] == key:
                rows = [*map(partition_and_offset_in, unpack_rows(hidden[1])), *rows]
                hidden = next(others, None)
            yield key, rows

    def apply(self, records: Sequence[Record], places: Mapping[int, PartitionPlace]) -> Applied:
        """Folds the records in and moves to the places, in one step.

        Records before the present position are passed over, so that applying a batch twice changes nothing. The
        counts in `places` are not looked at: they are this store's own.
        """
        positions = {partition: place.position for partition, place in self.places.items()}
        fresh = [r for r in records if r.key is not None and r.offset >= positions.get(r.partition, 0)]
        self.applied_records += len(fresh)
        return self._committed(fresh, places)

    def sweep(self, ghosts: Sequence[bytes], partition: int, place: PartitionPlace) -> Applied:
        """Removes the partition's rows of these keys: their tombstones are gone from the log."""
        tombstones = [Record(key, None, partition, place.position - 1, place.caught_up_at) for key in ghosts]
        return self._committed(tombstones, {partition: place._replace(swept_at=place.position)})

    def remove_left(self, left: Sequence[tuple[int, bytes]], log_starts: Mapping[int, int]) -> Applied:
        """Removes the partitions' rows of these keys, whose records have left the log at its start.

        `log_starts` is for the last of them: by partition the log start below which no row is left.
        """
        places = self.places
        tombstones = [Record(key, None, p, places[p].position - 1, places[p].caught_up_at) for p, key in left]
        moved = {p: places[p]._replace(swept_at=places[p].position) for p, _ in left}
        for partition, start in log_starts.items():
            place = moved.get(partition, places[partition])
            moved[partition] = place._replace(log_start=max(place.log_start, start))
        return self._committed(tombstones, moved)

    def ingest(self, files: Sequence[Path], places: Mapping[int, PartitionPlace]) -> None:
        """Fills an empty store: takes over sorted files of packed rows, and the places with the counts of these rows.

        No key may be in two files: only one of its rows would be left, and `count_keys` tells.
        """
        if files:
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            self.rows.ingest_external_file([str(file) for file in files], options)
        batch = WriteBatch(raw_mode=True)
        for partition, place in places.items():
            batch.put(PARTITION.pack(partition), pack_place(place), self.handles["places"])
        self.commit(batch, CommittedState(dict(places)))

    def commit(self, batch: WriteBatch, standing: CommittedState) -> None:
        """Writes the batch, and from then on tells what it leads to."""
        with self._turn:
            try:
                self.db.write(batch)
            except DbClosedError:
                raise
            except Exception as failure:
                raise self._judged(failure) from None
            # Only now: what a reader is told of the position must never be ahead of the rows.
            self.standing = standing
        # The rows are committed: on a full disk the note stays an older one, which asks for less.
        with suppress(OSError):
            self._inventory.keep()

    def count_keys(self) -> int:
        return self.rows.count()

    def flush(self) -> None:
        """Everything so far onto the disk."""
        for family in (self.rows, self.others, self.kept, self._places_family):
            family.flush()
        self.db.flush_wal(sync=True)

    def close(self) -> None:
        for family in (self.rows, self.others, self.kept, self._places_family):
            # On a full disk it fails, and then nothing is lost: what was committed is committed.
            with suppress(Exception):
                family.close()
        # A handle keeps the database open, and its folder locked.
        self.handles.clear()
        with suppress(Exception):
            self.db.close()
        with suppress(OSError):
            self._inventory.keep_now()

    def _committed(self, records: Sequence[Record], places: Mapping[int, PartitionPlace]) -> Applied:
        edit = BatchEdit(self)
        applied = edit.fold(records)
        edit.move(places)
        edit.commit()
        return applied

    def _judged(self, failure: Exception) -> LastwordError:
        """The error that a failure of RocksDB is here; damage is told to the owner of the store, too."""
        error = judged(failure)
        # The folder's name is of no use to those who hear of it, and may not be for them.
        what = str(error).replace(f"{self.folder}/", "")
        self.has_failed = self.has_failed or not isinstance(error, StoreDamaged)
        if isinstance(error, DiskFull):
            return DiskFull(f"no space is left for {self.folder} ({what}): free some")
        if isinstance(error, ReplicaUnusable):
            return ReplicaUnusable(f"{self.folder} is still read by an unfinished scan: end that first ({what})")
        if not isinstance(error, StoreDamaged):
            return LastwordError(f"{self.folder}: {what}")
        if self.damage is None:
            self.damage = what
            if self._on_damage is not None:
                self._on_damage(self, what)
        return StoreDamaged(what)

    def _opened(self) -> Rdict:
        folder, options = self.folder, store_options()
        missing = what_is_missing(folder)
        if missing is not None:
            raise self._judged(Exception(f"Corruption: {missing}"))
        is_new = not (folder / "CURRENT").exists()
        options.create_if_missing(is_new)
        try:
            # Those of another format too, so that its format can be asked for.
            there = [] if is_new else Rdict.list_cf(str(folder), options)
            families = {name for name in (*there, *_FAMILIES) if name != "default"}
            return Rdict(str(folder), options, column_families=dict.fromkeys(families, store_options()))
        except Exception as failure:  # rocksdict has no narrower one for a store that can't be opened
            raise self._judged(failure) from None

    def _refuse_another_format(self) -> None:
        """Before anything else is read: only what says the format has the same place in every format."""
        raw = self._places_family.get(_TABLE)
        told = FORMAT if raw is None else msgspec.json.decode(raw).get("format")
        if told == FORMAT:
            return
        if isinstance(told, int) and told < FORMAT:
            raise OlderFormat(f"{self.folder} has the format {told}, this lastword reads {FORMAT}")
        raise ReplicaUnusable(
            f"{self.folder} has the format {told}, this lastword reads {FORMAT}: use the lastword that wrote it, "
            "or delete the folder and it is built again from the topic"
        )

    def _read_places(self) -> dict[int, PartitionPlace]:
        return {
            PARTITION.unpack(key)[0]: unpack_place(raw)
            for key, raw in self._places_family.items()
            if key not in (_TABLE, _LEDGER)
        }


def store_options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_keep_log_file_num(2)
    # What a start after a crash has to replay; by default it may grow to gigabytes.
    options.set_max_total_wal_size(64 * 1024 * 1024)
    # Four times as fast an answer for a key that is not there: every new key of a batch is asked for.
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, block_based=False)
    blocks.set_block_cache(Cache(64 * 1024 * 1024))
    options.set_block_based_table_factory(blocks)
    return options
