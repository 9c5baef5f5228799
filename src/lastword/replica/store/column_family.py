"""A column family that gives a whole answer or an error, never a shortened answer.

RocksDB checks each block that it reads, and a read of one key says when a block is bad. An iterator does not: at a bad
block it ends, as it does after the last key, and only its status tells the two apart. So all iteration goes through
this module: an end counts as the end only when the iterator's status agrees.

An iterator shows the rows of the moment when the iterator was made. rocksdict has snapshots, too, but an iterator of a
snapshot also shows the moment of the iterator, not of the snapshot. So nothing here uses snapshots.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, cast, overload

from rocksdict import DbClosedError, IngestExternalFileOptions, Rdict, RdictIter

from lastword.core.errors import DiskFull, LastwordError, ReplicaUnusable, StoreDamaged

_Result = TypeVar("_Result")

# The text tells the kind of a failure: rocksdict has one exception for all of them.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_LOCKED = ("lock hold by current process", "While lock file")
_NOT_DAMAGE = ("Too many open files", "Permission denied", "Read-only file system", "Cannot allocate memory")
_DAMAGE = ("Corruption", "IO error", "Not implemented", "Invalid argument")


def judged(failure: Exception) -> LastwordError:
    """The error for a failure of RocksDB: damaged files, a full disk, a store that is open elsewhere, or another."""
    text = str(failure).split("\n")[0]
    if any(sign in text for sign in _FULL):
        return DiskFull(text)
    if any(sign in text for sign in _LOCKED):
        return ReplicaUnusable(text)
    if text.startswith(_DAMAGE) and not any(sign in text for sign in _NOT_DAMAGE):
        return StoreDamaged(text)
    return LastwordError(text or type(failure).__name__)


def explained(failure: Exception, work: str) -> LastwordError:
    """The failure as a LastwordError that names the work which it stopped."""
    if isinstance(failure, LastwordError):
        return failure
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"{work}: no space is left ({failure.strerror}): free some")
    # rocksdict has one exception for everything.
    error = judged(failure) if type(failure) is Exception else LastwordError(f"{type(failure).__name__}: {failure}")
    return type(error)(f"{work} stopped ({error})")


class ColumnFamily:
    """A column family in raw mode: bytes in, bytes out. `judge` makes a LastwordError of an error of RocksDB.

    A writer holds `turn`: two iterators that are made under it show one moment.
    """

    def __init__(
        self,
        raw: Rdict,
        judge: Callable[[Exception], LastwordError] = judged,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._raw = raw
        self._judge = judge
        self._turn = turn or nullcontext()
        self._get = cast("Callable[[bytes | list[bytes]], bytes | list[bytes | None] | None]", raw.get)

    @overload
    def get(self, key: bytes) -> bytes | None: ...
    @overload
    def get(self, key: list[bytes]) -> list[bytes | None]: ...
    def get(self, key: bytes | list[bytes]) -> bytes | list[bytes | None] | None:
        try:
            return self._get(key)
        except DbClosedError:
            raise
        except Exception as failure:
            raise self._judge(failure) from None

    def put(self, key: bytes, value: bytes) -> None:
        self._attempt(lambda: self._raw.put(key, value))

    def items(
        self, start: bytes = b"", end: bytes | None = None, *, expected: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Entries with start <= key < end, in key order, as they were at this call.

        With `expected`, another number of keys is an error, too.
        """
        # Not in the generator, which would start only at the first `next`.
        with self._turn:
            entries = cast("Iterator[tuple[bytes, bytes]]", self._raw.items(from_key=start))
            check = self._raw.iter()
        return self._whole(entries, check, start, end, expected)

    def cursor(self) -> FamilyCursor:
        """All entries of this moment, to be read from any key, any number of times."""
        return FamilyCursor(self._raw.iter(), self._judge)

    @property
    def pinned_bytes(self) -> int:
        """Memory that RocksDB holds for unfinished scans."""
        sizes = (self._raw.property_int_value(f"rocksdb.{name}-all-mem-tables") for name in ("size", "cur-size"))
        with_pinned, without = (size or 0 for size in sizes)
        return with_pinned - without

    def count(self) -> int:
        """The number of keys, each of them read."""
        with self._turn:
            keys, check = cast("Iterable[bytes]", self._raw.keys()), self._raw.iter()
        count, key = 0, None
        for count, key in enumerate(keys, 1):  # noqa: B007  the last of each
            pass
        self._check_end(check, b"", key)
        return count

    def ingest_external_file(self, paths: list[str], options: IngestExternalFileOptions) -> None:
        self._attempt(lambda: self._raw.ingest_external_file(paths, options))

    def flush(self) -> None:
        self._attempt(self._raw.flush)

    def close(self) -> None:
        self._raw.close()

    def _whole(
        self,
        entries: Iterator[tuple[bytes, bytes]],
        check: RdictIter,
        start: bytes,
        end: bytes | None,
        expected: int | None,
    ) -> Iterator[tuple[bytes, bytes]]:
        count, key = 0, None
        for key, value in entries:
            if end is not None and key >= end:
                return
            count += 1
            yield key, value
        self._check_end(check, start, key)
        if expected is not None and count != expected:
            raise self._judge(_wrong_count(count, expected))

    def _check_end(self, check: RdictIter, start: bytes, last: bytes | None) -> None:
        """Raises unless nothing follows the last key, by a second iterator of the same moment."""
        if last is None:
            check.seek(start)
        else:
            check.seek(last)
            check.next()
        self._attempt(check.status)
        if check.valid():
            raise self._judge(Exception(f"Corruption: the keys after {last!r} were left out"))

    def _attempt(self, act: Callable[[], _Result]) -> _Result:
        return _attempt(act, self._judge)


class FamilyCursor:
    """A column family as it was when this was made; used by one thread at a time. It pins files and memory."""

    def __init__(self, raw: RdictIter, judge: Callable[[Exception], LastwordError]) -> None:
        self._raw = raw
        self._judge = judge

    def items(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries from a key on, in key order; ends only after the last key."""
        cursor = self._raw
        cursor.seek(start)
        while cursor.valid():
            yield cast("bytes", cursor.key()), cast("bytes", cursor.value())
            cursor.next()
        _attempt(cursor.status, self._judge)

    def check_count(self, count: int, expected: int) -> None:
        """Raises when the number of keys is not the expected one."""
        if count != expected:
            raise self._judge(_wrong_count(count, expected))


def _wrong_count(count: int, expected: int) -> Exception:
    return Exception(f"Corruption: {count} rows were found, and there should be {expected}")


def _attempt(act: Callable[[], _Result], judge: Callable[[Exception], LastwordError]) -> _Result:
    try:
        return act()
    except DbClosedError:
        raise
    except Exception as failure:
        raise judge(failure) from None
