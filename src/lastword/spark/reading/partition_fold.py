"""The fold of one Kafka partition, in a Python worker of Spark: all records of a key are there, in offset order.

So it needs no shuffle and no sort, only a dict. The worker reads the partition itself, so no record goes through the
JVM. When the dict grows past its bound, it moves to the disk, spread by hash over files that are folded one after
another: the bound holds for any number of keys. For records in another order see `fold`.
"""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import IO, Any

import numpy
import pyarrow

from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import DecodeError, HorizonPassed
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import Columns, ReadQueue, no_cyclic_garbage, read_columns
from lastword.spark.reading.offset_range import OffsetRange
from lastword.spark.reading.packed_rows import (
    HEADERS_ARROW_TYPE,
    HEADERS_TYPE,
    packed_rows,
    payload_bytes,
    places_of,
    values_and_headers,
)

# The memory of an entry beside its bytes: the heads of two objects, and a slot of the dict.
_ENTRY_BYTES = 170
_FILES = 32
# The most rows and bytes of a batch that goes to the JVM.
_BATCH_ROWS = 8192
_BATCH_BYTES = 16 * 1024**2

_ARROW_TYPES = {
    "bigint": pyarrow.int64(),
    "binary": pyarrow.binary(),
    "int": pyarrow.int32(),
    "string": pyarrow.string(),
    "timestamp": pyarrow.timestamp("us", tz="UTC"),
    HEADERS_TYPE: HEADERS_ARROW_TYPE,
}
_SQL_TYPES = {"string": "string", "json": "string", "bytes": "binary", "int": "bigint"}


class TooLarge(Exception):
    """The records have more bytes than the reader takes."""


class Room:
    """How many bytes of values may still be read, from all partitions together."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLarge


@dataclass(frozen=True, kw_only=True)
class PartitionFold:
    """What a task needs to fold one partition; sent to the workers."""

    connection: Connection
    offset_range: OffsetRange
    key_codec: str
    value_codec: str
    memory_bytes: int

    @property
    def sql_schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self._columns_of_a_row)

    @property
    def arrow_schema(self) -> pyarrow.Schema:
        return pyarrow.schema([(name, _ARROW_TYPES[kind]) for name, kind in self._columns_of_a_row])

    @property
    def _columns_of_a_row(self) -> tuple[tuple[str, str], ...]:
        return (
            ("raw_key", "binary"),
            ("key", _SQL_TYPES[self.key_codec]),
            ("value", _SQL_TYPES[self.value_codec]),
            ("partition", "int"),
            ("offset", "bigint"),
            ("timestamp", "timestamp"),
            ("headers", HEADERS_TYPE),
            ("decode_error", "string"),
        )

    def rows(self, partition: int, room: Room | None = None) -> Iterator[pyarrow.RecordBatch]:
        """The live rows of the partition, decoded, each key once; TooLarge when the records need more than `room`."""
        newest = NewestRows(self.memory_bytes)
        with no_cyclic_garbage():
            for columns in self._columns(partition):
                newest.fold(columns)
                if room is not None:
                    room.take(payload_bytes(columns))
            for rows in newest.taken():
                yield from self._batches(partition, rows)

    def _columns(self, partition: int) -> Iterator[Columns]:
        """The committed records; HorizonPassed at the first gap of a past partition, which compaction may have left.

        Checked while they are read, because the cleaner may come between a check and a read.
        """
        wanted = self.offset_range
        expected, end, is_past = wanted.start[partition], wanted.stop[partition], partition in wanted.past
        start, stop = Position({partition: expected}), Position({partition: end})
        for batch in read_columns(self.connection, wanted.topic, start=start, stop=stop, queue=ReadQueue()):
            for columns in batch:
                if is_past and columns.offsets[-1] - expected + 1 != len(columns.offsets):
                    present = set(columns.offsets)
                    raise self._gap(partition, next(o for o in range(expected, end) if o not in present))
                expected = columns.offsets[-1] + 1
                yield columns
        if is_past and expected < end:
            raise self._gap(partition, expected)

    def _gap(self, partition: int, offset: int) -> HorizonPassed:
        topic, stop = self.offset_range.topic, self.offset_range.stop
        return HorizonPassed(
            f"{topic} at {stop}: {topic}[{partition}] has no record at offset {offset}: compaction (or "
            "the end of a transaction) left a gap before that position, so its state is not certain: ask for latest"
        )

    def _batches(self, partition: int, rows: dict[bytes, bytes]) -> Iterator[pyarrow.RecordBatch]:
        keys, values = _Decoding(self.key_codec), _Decoding(self.value_codec)
        for batch in _batches_of(rows):
            raw_keys = [key for key, _ in batch]
            packed = [row for _, row in batch]
            places = places_of(packed)
            decoded_keys, key_errors = keys.column(raw_keys)
            raw_values, headers = values_and_headers(packed, has_headers=places["headers"].any())
            decoded_values, value_errors = values.column(raw_values)
            errors = [key or value for key, value in zip(key_errors, value_errors, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(
                [
                    pyarrow.array(raw_keys, pyarrow.binary()),
                    decoded_keys,
                    decoded_values,
                    pyarrow.array(numpy.full(len(batch), partition, dtype="i4")),
                    pyarrow.array(places["offset"].astype("i8")),
                    pyarrow.array(places["timestamp"].astype("i8") * 1000).cast(_ARROW_TYPES["timestamp"]),
                    headers,
                    pyarrow.array(errors, pyarrow.string()),
                ],
                schema=self.arrow_schema,
            )


class NewestRows:
    """The newest row of each key, in memory up to a bound and beyond it on the disk."""

    def __init__(self, memory_bytes: int, *, depth: int = 0) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._memory_bytes = memory_bytes
        self._depth = depth
        self._files: dict[int, IO[bytes]] = {}
        # An upper bound of the memory in use, counted again when it seems too large: most rows replace another.
        self._bytes_at_most = 0

    def fold(self, columns: Columns) -> None:
        self.update(dict(zip(columns.keys, packed_rows(columns), strict=True)))

    def update(self, rows: dict[Any, bytes]) -> None:
        """Takes later rows, empty for a tombstone; a record without a key is no row."""
        rows.pop(None, None)
        self._rows.update(rows)
        self._bytes_at_most += _weight(rows)
        if self._bytes_at_most > self._memory_bytes:
            self._make_room()

    def taken(self) -> Iterator[dict[bytes, bytes]]:
        """The live rows, in parts that share no key."""
        if not self._files:
            yield {key: row for key, row in self._rows.items() if row}
            self._rows = {}
            return
        self._spill()
        while self._files:
            _, file = self._files.popitem()
            with file:
                part = NewestRows(self._memory_bytes, depth=self._depth + 1)
                file.seek(0)
                for rows in _dumped(file):
                    part.update(rows)
            # The file is gone by now: its rows are in the part, or in files of that part.
            yield from part.taken()

    def _make_room(self) -> None:
        if not self._files:
            # A tombstone is needed only to beat a row that is on the disk already.
            self._rows = {key: row for key, row in self._rows.items() if row}
        self._bytes_at_most = _weight(self._rows)
        if self._bytes_at_most > self._memory_bytes // 2 and len(self._rows) > 1:
            self._spill()

    def _spill(self) -> None:
        parts: dict[int, dict[bytes, bytes]] = {}
        salt = self._depth.to_bytes(2, "big")
        for key, row in self._rows.items():
            # Another hash at every depth, or all keys of a file would go to one file again.
            number = blake2b(key, digest_size=1, salt=salt).digest()[0] % _FILES
            parts.setdefault(number, {})[key] = row
        for number, part in parts.items():
            if number not in self._files:
                # Without a name: the kernel removes the file when the process ends.
                self._files[number] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is read back
            marshal.dump(part, self._files[number])
        self._rows = {}
        self._bytes_at_most = 0


class _Decoding:
    """Columns of one codec: a value that it can't read becomes null, with the reason beside it."""

    def __init__(self, name: str) -> None:
        self._codec: Codec = codec_named(name)
        self._decode = self._text if name == "json" else self._codec.decode
        self._type = _ARROW_TYPES[_SQL_TYPES[name]]

    def column(self, raw: list[bytes]) -> tuple[pyarrow.Array, list[str | None]]:
        try:
            return pyarrow.array(list(map(self._decode, raw)), self._type), [None] * len(raw)
        except DecodeError:
            cells = list(map(self._cell, raw))
            return pyarrow.array([value for value, _ in cells], self._type), [error for _, error in cells]

    def _cell(self, raw: bytes) -> tuple[Any, str | None]:
        try:
            return self._decode(raw), None
        except DecodeError as damage:
            return None, str(damage)

    def _text(self, raw: bytes) -> str:
        return self._codec.to_json(raw).decode()


def _weight(rows: dict[bytes, bytes]) -> int:
    return sum(map(len, rows)) + sum(map(len, rows.values())) + _ENTRY_BYTES * len(rows)


def _dumped(file: IO[bytes]) -> Iterator[dict[bytes, bytes]]:
    while True:
        try:
            yield marshal.load(file)  # noqa: S302 - a file of our own, in a folder that only we may read
        except EOFError:
            return


def _batches_of(rows: dict[bytes, bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for key, row in rows.items():
        batch.append((key, row))
        size += len(key) + len(row)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def ids(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
