"""The store: a table's rows and its position in one RocksDB, committed together.

Column families:

    rows    key -> the row that is shown
    others  key -> the live rows of that key in other partitions, which are not shown
    kept    key -> the last value this replica could read, of a key whose newest value it can't
    places  partition (4 bytes) -> its place; "table" -> what this is a copy of; "ledger" -> where it stood when

One WriteBatch carries rows, places and counts, so no crash can part them: after any kill the rows are the fold of
the records before the position. Rows scan in key order. One thread writes; any number read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Protocol, cast, overload

import msgspec
from rocksdict import BlockBasedOptions, Cache, IngestExternalFileOptions, Options, Rdict, WriteBatch

from lastword.core.errors import ReplicaUnusable
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.replica.edit import Applied, Edit
from lastword.replica.layout import (
    FORMAT,
    PARTITION,
    Place,
    Standing,
    pack_place,
    partition_in,
    unpack_place,
    unpack_row,
    unpack_rows,
)
from lastword.replica.ledger import Ledger

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


class Family(Protocol):
    """A column family in raw mode: bytes in, bytes out."""

    @overload
    def get(self, key: bytes) -> bytes | None: ...
    @overload
    def get(self, key: list[bytes]) -> list[bytes | None]: ...
    def put(self, key: bytes, value: bytes) -> None: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self, *, from_key: bytes = ...) -> Iterator[tuple[bytes, bytes]]: ...
    def ingest_external_file(self, paths: list[str], opts: IngestExternalFileOptions) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class Store:
    """An open store. `readable` says whether the value codec can read some bytes."""

    def __init__(
        self, folder: Path, *, readable: Callable[[bytes], bool], last_good_bytes: int = 64 * 1024 * 1024
    ) -> None:
        self.folder = folder
        self.readable = readable
        self.last_good_bytes = last_good_bytes
        self.db = _opened(folder)
        self.rows, self.others, self.kept, self._places_family = (
            cast(Family, self.db.get_column_family(name)) for name in _FAMILIES
        )
        self.handles = {name: self.db.get_column_family_handle(name) for name in _FAMILIES}
        try:
            self._refuse_another_format()
            hidden = [len(unpack_rows(raw)) for raw in self.others.values()]
            self.standing = Standing(self._read_places(), len(hidden), sum(hidden))
            self._position = Standing({}), Position()
            self.kept_bytes = sum(map(len, self.kept.values()))
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> Identity:
        raw = self._places_family.get(_TABLE)
        if raw is None:
            raise ReplicaUnusable(
                f"{self.folder} does not say which table it is: delete the folder, and it is built again"
            )
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
    def places(self) -> Mapping[int, Place]:
        return self.standing.places

    @property
    def split_keys(self) -> int:
        return self.standing.split_keys

    @property
    def position(self) -> Position:
        # Made once for each commit: `standing` is replaced as a whole, and every read over HTTP asks for this.
        standing = self.standing
        known, position = self._position
        if known is not standing:
            position = Position({partition: place.position for partition, place in standing.places.items()})
            self._position = standing, position
        return position

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
        # Here and not in a generator, which would begin when it is first asked.
        rows = self.rows.items(from_key=start)
        upto = rows if end is None else takewhile(lambda row: row[0] < end, rows)
        return (unpack_row(key, raw) for key, raw in upto)

    def keys_of(self, partition: int) -> Iterator[bytes]:
        """In key order, the keys that have a live row in the partition, shown or not."""
        hidden = sorted(key for key, raw in self.others.items() if partition in map(partition_in, unpack_rows(raw)))
        at = 0
        for key, raw in self.rows.items():
            while at < len(hidden) and hidden[at] < key:
                yield hidden[at]
                at += 1
            if partition_in(raw) == partition:
                yield key
        yield from hidden[at:]

    def apply(self, records: Sequence[Record], places: Mapping[int, Place]) -> Applied:
        """Folds the records in and moves to the places, in one step.

        Records before the present position are passed over, so that applying a batch twice changes nothing. The
        counts in `places` are not looked at: they are this store's own.
        """
        positions = {partition: place.position for partition, place in self.places.items()}
        fresh = [r for r in records if r.key is not None and r.offset >= positions.get(r.partition, 0)]
        return self._committed(fresh, places)

    def sweep(self, ghosts: Sequence[bytes], partition: int, place: Place) -> Applied:
        """Removes the partition's rows of these keys: their tombstones are gone from the log."""
        tombstones = [Record(key, None, partition, place.position - 1, place.caught_up_at) for key in ghosts]
        return self._committed(tombstones, {partition: place._replace(swept_at=place.position)})

    def ingest(self, files: Sequence[Path], places: Mapping[int, Place]) -> None:
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
        self.db.write(batch)
        self.standing = Standing(dict(places))

    def count_keys(self) -> int:
        return sum(1 for _ in self.rows.keys())  # noqa: SIM118  a family is no iterable

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

    def _committed(self, records: Sequence[Record], places: Mapping[int, Place]) -> Applied:
        edit = Edit(self)
        applied = edit.fold(records)
        edit.move(places)
        edit.commit()
        return applied

    def _refuse_another_format(self) -> None:
        """Before anything else is read: only what says the format has the same place in every format."""
        raw = self._places_family.get(_TABLE)
        told = FORMAT if raw is None else msgspec.json.decode(raw).get("format")
        if told != FORMAT:
            raise ReplicaUnusable(
                f"{self.folder} has the format {told}, this lastword reads {FORMAT}: use the lastword that wrote it, "
                "or delete the folder and it is built again from the topic"
            )

    def _read_places(self) -> dict[int, Place]:
        return {
            PARTITION.unpack(key)[0]: unpack_place(raw)
            for key, raw in self._places_family.items()
            if key not in (_TABLE, _LEDGER)
        }


def _opened(folder: Path) -> Rdict:
    try:
        # Those of another format too, so that its format can be asked for.
        there = Rdict.list_cf(str(folder), store_options()) if (folder / "CURRENT").exists() else []
        families = {name for name in (*there, *_FAMILIES) if name != "default"}
        return Rdict(str(folder), store_options(), column_families=dict.fromkeys(families, store_options()))
    except Exception as refusal:  # rocksdict has no narrower one for a store that can't be opened
        raise ReplicaUnusable(
            f"{folder} can't be opened ({refusal}): end what still reads it (an unfinished scan does), or delete the "
            "folder and it is built again from the topic"
        ) from None


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
