"""Sorted runs: rows that moved to the disk while a topic is folded, each run in key order.

A worker has one file for all its runs. A run consists of blocks, and a block of two lists: keys, and their packed rows.
The index, a file beside it, has the first key of each block, so that any range of keys is found in every run. Each
block and the index carry a checksum. The files live as long as one build, and only this module reads them.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from lastword.core.errors import LastwordError

# A block is read and checked as a whole: small beside the part of a run that a range of keys takes, large enough that
# its entry in the index weighs little.
_BLOCK_ROWS = 256
_BLOCK_BYTES = 64 * 1024
_CHECKSUM_BYTES = 4

# Keys in their order, and the packed row of each.
Piece = tuple[list[bytes], list[bytes]]

_encoder = msgspec.msgpack.Encoder()
_piece = msgspec.msgpack.Decoder(Piece)


class Block(msgspec.Struct, array_like=True, frozen=True, gc=False):
    first_key: bytes
    at: int
    size: int
    rows: int
    checksum: int


_index = msgspec.msgpack.Decoder(list[list[Block]])


class RunsWriter:
    """Writes runs one after the other; `close` writes their index."""

    def __init__(self, file: Path) -> None:
        self._path = file
        self._file = file.open("wb")
        self._at = 0
        self._runs: list[list[Block]] = []

    def add(self, rows: Mapping[bytes, bytes]) -> None:
        keys = sorted(rows)
        packed = [*map(rows.__getitem__, keys)]
        steps = [slice(start, start + _BLOCK_ROWS) for start in range(0, len(keys), _BLOCK_ROWS)]
        blocks = [self._written(piece) for step in steps for piece in _small_pieces(keys[step], packed[step])]
        if blocks:
            self._runs.append(blocks)

    def close(self) -> None:
        self._file.close()
        index = _encoder.encode(self._runs)
        _index_of(self._path).write_bytes(zlib.crc32(index).to_bytes(_CHECKSUM_BYTES) + index)

    def _written(self, piece: Piece) -> Block:
        keys, _ = piece
        raw, at = _encoder.encode(piece), self._at
        self._file.write(raw)
        self._at += len(raw)
        return Block(first_key=keys[0], at=at, size=len(raw), rows=len(keys), checksum=zlib.crc32(raw))


class RunsReader:
    """The runs of one worker, in the order in which they were written: a later run has later records."""

    def __init__(self, file: Path) -> None:
        self._path = file
        self.runs = read_index(file)
        self._first_keys = [[block.first_key for block in run] for run in self.runs]
        self._file = file.open("rb")

    def __enter__(self) -> RunsReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()

    def pieces(self, low: bytes, high: bytes | None) -> Iterator[Piece]:
        """The rows with low <= key < high, run after run."""
        for run, first_keys in zip(self.runs, self._first_keys, strict=True):
            # The block before the first one that begins at `low` or later may reach into the range.
            first = max(0, bisect_left(first_keys, low) - 1)
            last = len(run) if high is None else bisect_left(first_keys, high)
            if first < last:
                yield from self._read(run[first:last], low, high)

    def _read(self, blocks: list[Block], low: bytes, high: bytes | None) -> Iterator[Piece]:
        at, end = blocks[0].at, blocks[-1].at + blocks[-1].size
        read = memoryview(os.pread(self._file.fileno(), end - at, at))
        for block in blocks:
            raw = read[block.at - at : block.at - at + block.size]
            if zlib.crc32(raw) != block.checksum:
                raise _damaged(self._path)
            keys, rows = _piece.decode(raw)
            if keys[0] < low or (high is not None and keys[-1] >= high):
                cut = slice(bisect_left(keys, low), None if high is None else bisect_left(keys, high))
                keys, rows = keys[cut], rows[cut]
            if keys:
                yield keys, rows


def _small_pieces(keys: list[bytes], packed: list[bytes]) -> Iterator[Piece]:
    """The rows in pieces that fit into a block; only a row that is larger alone makes a larger piece."""
    if len(keys) > 1 and sum(map(len, keys)) + sum(map(len, packed)) > _BLOCK_BYTES:
        middle = len(keys) // 2
        yield from _small_pieces(keys[:middle], packed[:middle])
        yield from _small_pieces(keys[middle:], packed[middle:])
    else:
        yield keys, packed


def remove_runs(file: Path) -> None:
    file.unlink()
    _index_of(file).unlink()


def _index_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-index")


def read_index(file: Path) -> list[list[Block]]:
    raw = _index_of(file).read_bytes()
    if zlib.crc32(raw[_CHECKSUM_BYTES:]).to_bytes(_CHECKSUM_BYTES) != raw[:_CHECKSUM_BYTES]:
        raise _damaged(_index_of(file))
    return _index.decode(raw[_CHECKSUM_BYTES:])


def _damaged(file: Path) -> LastwordError:
    return LastwordError(
        f"{file.name}, a file of the build, is not as it was written: check the disk; the build starts again"
    )
