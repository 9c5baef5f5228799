"""One worker's share of the merge: ranges of keys, each from the runs of all workers into one file of live rows.

Ranges do not overlap, so RocksDB takes the files over as they are: nothing has to be compacted afterwards, and the
number of rows is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from types import TracebackType

from rocksdict import SstFileWriter

from lastword.core.codecs import Codec, codec_named, readable_by
from lastword.replica.building.sorted_runs import Piece, RunsReader
from lastword.replica.building.tasks import MergedRows, MergeTask
from lastword.replica.store.database import store_options
from lastword.replica.store.row_layout import FLAGS_AT, PARTITION, ROW_HEAD, as_poison, partition_in, value_in

# So many values are checked together: their copies are small beside the rows of a range.
_CHECKED_TOGETHER = 4096

_partition_of = itemgetter(slice(0, PARTITION.size))
_flags_of = itemgetter(FLAGS_AT)
_after_head_of = itemgetter(slice(ROW_HEAD.size, None))


class SplitKey(Exception):
    """A key has live rows in two partitions."""


def merged(task: MergeTask, passed: Callable[[int], None]) -> MergedRows:
    """Writes the file of each range; raises SplitKey when a key has live rows in two partitions."""
    codec, rows_read = codec_named(task.value_codec), 0
    dropped, poison = Counter[int](), Counter[int]()
    with ExitStack() as files:
        readers = [files.enter_context(RunsReader(Path(file))) for file in task.runs_files]
        for row_file in task.row_files:
            with RowFileWriter(Path(row_file.file), codec) as writer:
                for low, high in row_file.ranges:
                    pieces = [piece for reader in readers for piece in reader.pieces(low, high)]
                    rows_read += sum(len(keys) for keys, _ in pieces)
                    rows, dropped_here = newest_of(pieces)
                    del pieces
                    dropped.update(dropped_here)
                    writer.add(rows)
                    # Before the next range is read.
                    del rows
                    passed(rows_read)
            poison.update(writer.poison)
    return MergedRows(dropped=dropped, poison=poison)


def newest_of(pieces: Sequence[Piece]) -> tuple[dict[bytes, bytes], Mapping[int, int]]:
    """The live rows among pieces of runs, and by partition how many entries are no live row."""
    rows: dict[bytes, bytes] = {}
    for keys, packed in pieces:
        rows.update(zip(keys, packed, strict=True))
    is_each_its_own = len(rows) == sum(len(keys) for keys, _ in pieces)
    if is_each_its_own and min(map(len, rows.values()), default=ROW_HEAD.size) > PARTITION.size:
        return rows, {}
    return _newest_of_repeated(pieces)


def _newest_of_repeated(pieces: Iterable[Piece]) -> tuple[dict[bytes, bytes], Mapping[int, int]]:
    """The same where keys repeat, or are deleted: the law for each partition apart."""
    newest: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    dropped = Counter[int]()
    for keys, packed in pieces:
        for key, row in zip(keys, packed, strict=True):
            newest[row[: PARTITION.size]][key] = row
        for partition, entries in Counter(map(_partition_of, packed)).items():
            dropped[partition_in(partition)] += entries
    rows: dict[bytes, bytes] = {}
    live = 0
    for partition, by_key in newest.items():
        # A tombstone is nothing but its partition.
        of_partition = {key: row for key, row in by_key.items() if len(row) > PARTITION.size}
        rows.update(of_partition)
        live += len(of_partition)
        dropped[partition_in(partition)] -= len(of_partition)
    if len(rows) < live:
        raise SplitKey
    return rows, dropped


class RowFileWriter:
    """Writes rows in key order to a file for RocksDB; without a row there is no file.

    A value is decoded only here, when it is known to be the newest of its key.
    """

    def __init__(self, file: Path, codec: Codec) -> None:
        self._path = file
        self._codec, self._readable = codec, readable_by(codec)
        self._writer = SstFileWriter(store_options())
        self._is_empty = True
        # By partition, how many rows the codec can't read.
        self.poison = Counter[int]()

    def __enter__(self) -> RowFileWriter:
        self._writer.open(str(self._path))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            return
        if self._is_empty:
            # RocksDB takes no empty file.
            self._path.unlink()
        else:
            self._writer.finish()

    def add(self, rows: dict[bytes, bytes]) -> None:
        """Rows with keys after those of earlier calls."""
        keys = sorted(rows)
        self._is_empty = self._is_empty and not keys
        for start in range(0, len(keys), _CHECKED_TOGETHER):
            some = keys[start : start + _CHECKED_TOGETHER]
            packed = [*map(rows.__getitem__, some)]
            values = _values_in(packed)
            if not self._codec.reads_all(values):
                for at in [at for at, value in enumerate(values) if not self._readable(value)]:
                    self.poison[partition_in(packed[at])] += 1
                    packed[at] = as_poison(packed[at])
            # By map, in C: no step of ours for each row.
            deque(map(self._writer.__setitem__, some, packed), maxlen=0)


def _values_in(packed: list[bytes]) -> list[bytes]:
    """The value in each row. A row that was just read has no flag but the one for headers."""
    return [*map(value_in if any(map(_flags_of, packed)) else _after_head_of, packed)]
