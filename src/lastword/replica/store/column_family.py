"""A column family whose every answer is whole, or an error.

RocksDB checks each block that it reads, and a read of one key says when a block is bad. An iterator does not: at a bad
block it ends, as it does after the last key, and only its status tells the two apart. So whoever iterates, iterates
here: an end is taken for the end only when the iterator's status agrees.

An iterator shows what was there when it was made. rocksdict has snapshots, too, but their iterators show what is there
when they are made, so nothing here is built on them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, cast, overload

from rocksdict import DbClosedError, IngestExternalFileOptions, Rdict, RdictIter

from lastword.core.errors import DiskFull, LastwordError, ReplicaUnusable, StoreDamaged

_Found = TypeVar("_Found")

# What a failure is told by: rocksdict has one exception for all of them.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_LOCKED = ("lock hold by current process", "While lock file")
_NOT_DAMAGE = ("Too many open files", "Permission denied", "Read-only file system", "Cannot allocate memory")
_DAMAGE = ("Corruption", "IO error", "Not implemented", "Invalid argument")


def judged(failure: Exception) -> LastwordError:
    """What a failure of RocksDB means: damaged files, a full disk, a store that another one has open, or another."""
    text = str(failure).split("\n")[0]
    if any(sign in text for sign in _FULL):
        return DiskFull(text)
    if any(sign in text for sign in _LOCKED):
        return ReplicaUnusable(text)
    if text.startswith(_DAMAGE) and not any(sign in text for sign in _NOT_DAMAGE):
        return StoreDamaged(text)
    return LastwordError(text or type(failure).__name__)


def explained(failure: Exception, what: str) -> LastwordError:
    """The failure as one of ours, with what it happened to."""
    if isinstance(failure, LastwordError):
        return failure
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"{what}: no space is left ({failure.strerror}): free some")
    # rocksdict has one exception for everything.
    error = judged(failure) if type(failure) is Exception else LastwordError(f"{type(failure).__name__}: {failure}")
    return type(error)(f"{what} stopped ({error})")


class ColumnFamily:
    """A column family in raw mode: bytes in, bytes out. `judge` makes an error of what RocksDB says.

    `turn` is held by whoever writes: two iterators that are made under it are of one moment.
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
        """What is there with start <= key < end, in key order, as it was at this call.

        With `expected` it is an error, too, when another number of keys is there.
        """
        # Here and not in the generator, which would begin when it is first asked.
        with self._turn:
            found = cast("Iterator[tuple[bytes, bytes]]", self._raw.items(from_key=start))
            check = self._raw.iter()
        return self._whole(found, check, start, end, expected)

    def cursor(self) -> FamilyCursor:
        """What is there now, to be read from any key, as often as is wanted."""
        return FamilyCursor(self._raw.iter(), self._judge)

    @property
    def pinned_bytes(self) -> int:
        """Memory that is kept only because somebody has not finished reading older rows."""
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
        found: Iterator[tuple[bytes, bytes]],
        check: RdictIter,
        start: bytes,
        end: bytes | None,
        expected: int | None,
    ) -> Iterator[tuple[bytes, bytes]]:
        count, key = 0, None
        for key, value in found:
            if end is not None and key >= end:
                return
            count += 1
            yield key, value
        self._check_end(check, start, key)
        if expected is not None and count != expected:
            raise self._judge(_wrong_count(count, expected))

    def _check_end(self, check: RdictIter, start: bytes, last: bytes | None) -> None:
        """Raises unless what follows the last key that was given is the end, for an iterator of the same moment."""
        if last is None:
            check.seek(start)
        else:
            check.seek(last)
            check.next()
        self._attempt(check.status)
        if check.valid():
            raise self._judge(Exception(f"Corruption: the keys after {last!r} were left out"))

    def _attempt(self, act: Callable[[], _Found]) -> _Found:
        return _attempt(act, self._judge)


class FamilyCursor:
    """A column family as it was when this was made; used by one thread at a time. It pins files and memory."""

    def __init__(self, raw: RdictIter, judge: Callable[[Exception], LastwordError]) -> None:
        self._raw = raw
        self._judge = judge

    def items(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """From a key on, in key order; ends only after the last key."""
        found = self._raw
        found.seek(start)
        while found.valid():
            yield cast("bytes", found.key()), cast("bytes", found.value())
            found.next()
        _attempt(found.status, self._judge)

    def check_count(self, count: int, expected: int) -> None:
        """Raises when another number of keys was found than there should be."""
        if count != expected:
            raise self._judge(_wrong_count(count, expected))


def _wrong_count(count: int, expected: int) -> Exception:
    return Exception(f"Corruption: {count} rows were found, and there should be {expected}")


def _attempt(act: Callable[[], _Found], judge: Callable[[Exception], LastwordError]) -> _Found:
    try:
        return act()
    except DbClosedError:
        raise
    except Exception as failure:
        raise judge(failure) from None
