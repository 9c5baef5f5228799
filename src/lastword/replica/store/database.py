"""The RocksDB of a store: its four column families, opened, written, flushed and closed together.

rows              key -> the row that is shown
hidden_rows       key -> the live rows of that key in other partitions, which are not shown
last_good_values  key -> the last value that the codec could read, for a key whose newest value it can't read
partition_states  partition (4 bytes) -> its state; "table" -> the identity; "ledger" -> positions of the past
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rocksdict import BlockBasedOptions, Cache, DbClosedError, Options, Rdict, WriteBatch

from lastword.core.errors import LastwordError
from lastword.replica.store.column_family import ColumnFamily
from lastword.replica.store.file_inventory import InventoryNote, missing_part

# The names on disk. They never change: another name would be another format.
ROWS, HIDDEN_ROWS, LAST_GOOD_VALUES, PARTITION_STATES = _NAMES = ("rows", "others", "kept", "places")


class Database:
    """`judge` makes a LastwordError of an error of RocksDB. One thread writes; any number read."""

    def __init__(self, folder: Path, judge: Callable[[Exception], LastwordError]) -> None:
        """Opens the database, or makes an empty one in a folder that has none."""
        self._judge = judge
        self.rocksdb = _opened(folder, judge)
        self.inventory = InventoryNote(folder)
        # Held while a commit changes the rows and the state that goes with them: a reader who holds it sees both of
        # one moment.
        self.turn = threading.RLock()
        self._families = [ColumnFamily(self.rocksdb.get_column_family(name), judge, self.turn) for name in _NAMES]
        self.rows, self.hidden_rows, self.last_good_values, self.partition_states = self._families
        # For a WriteBatch: by name on disk.
        self.handles = {name: self.rocksdb.get_column_family_handle(name) for name in _NAMES}

    def write(self, batch: WriteBatch) -> None:
        try:
            self.rocksdb.write(batch)
        except DbClosedError:
            raise
        except Exception as failure:
            raise self._judge(failure) from None

    def flush(self) -> None:
        """Everything so far onto the disk."""
        for family in self._families:
            family.flush()
        self.rocksdb.flush_wal(sync=True)

    def close(self) -> None:
        for family in self._families:
            # On a full disk this fails, but no committed row is lost.
            with suppress(Exception):
                family.close()
        # A handle keeps the database open, and its folder locked.
        self.handles.clear()
        with suppress(Exception):
            self.rocksdb.close()
        with suppress(OSError):
            self.inventory.keep_now()


def _opened(folder: Path, judge: Callable[[Exception], LastwordError]) -> Rdict:
    missing = missing_part(folder)
    if missing is not None:
        raise judge(Exception(f"Corruption: {missing}"))
    options, is_new = store_options(), not (folder / "CURRENT").exists()
    options.create_if_missing(is_new)
    try:
        # With the families of another format too, so that its format can be read.
        existing = [] if is_new else Rdict.list_cf(str(folder), options)
        names = {name for name in (*existing, *_NAMES) if name != "default"}
        return Rdict(str(folder), options, column_families=dict.fromkeys(names, store_options()))
    except Exception as failure:  # rocksdict has no narrower one for a database that can't be opened
        raise judge(failure) from None


def store_options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_keep_log_file_num(2)
    # The log that a start after a crash has to replay; by default it may grow to gigabytes.
    options.set_max_total_wal_size(64 * 1024 * 1024)
    # Every new key of a batch is looked up: with this the answer for a missing key comes four times as fast.
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, block_based=False)
    blocks.set_block_cache(Cache(64 * 1024 * 1024))
    options.set_block_based_table_factory(blocks)
    return options
