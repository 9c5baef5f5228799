"""A replica's folder: one owner, one whole store, and at most one in the making.

    owner.lock    held by the process that writes here, with its pid inside
    store-7/      the store; a higher number is newer, and a store with a file `outdated` in it is not used any more
    building-8/   a store being built; with a file `complete` in it, it is whole and becomes store-8 by a rename
    damaged-6/    the last store that was found damaged, kept for a person to look at; nothing reads it
    damages.json  when stores were found damaged (see `damage_log`)
    scratch-*/    files of a pass over the log

Leftovers of a crash (a building without `complete`, an older store, scratch) are deleted at the next start. The folder
is renamed last, and no number is used twice: readers may still have an older store open.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal
from uuid import uuid4

from lastword.core.durable import sync
from lastword.core.errors import ReplicaUnusable
from lastword.core.home import private_folder

_LOCK = "owner.lock"
_OUTDATED = "outdated"
# For files that RocksDB writes beside its tables, and the next few commits.
_SPARE_BYTES = 8 * 1024 * 1024


class ReplicaFolder:
    """The folder, held by this process until it is closed."""

    def __init__(self, path: Path, *, sync: Callable[[Path], None] = sync) -> None:
        self.path = path
        # Writes a file, or the names in a folder, to the disk.
        self._sync = sync
        try:
            # Before its permissions are changed: the folder may belong to something else.
            if path.is_dir() and not (path / _LOCK).exists() and any(path.iterdir()):
                raise ReplicaUnusable(f"{path} is not empty and holds no replica: give an empty folder, or a new one")
            private_folder(path)
            self._lock = _held(path / _LOCK)
        except OSError as refusal:
            raise ReplicaUnusable(f"{path}: {refusal.strerror or refusal}: give another folder") from None
        kinds: tuple[Literal["store", "building", "damaged"], ...] = ("store", "building", "damaged")
        self._last_number = max((_number(place) for kind in kinds for place in self._places(kind)), default=0)
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    @property
    def current(self) -> Path | None:
        """The newest whole store, or None before the first one is built."""
        return max((p for p in self._places("store") if not (p / _OUTDATED).exists()), key=_number, default=None)

    @property
    def was_set_aside(self) -> bool:
        """Whether the last store that was here was found damaged."""
        return self.current is None and bool(self._places("damaged"))

    def new_building(self) -> Path:
        self.drop_buildings()
        # Never a number twice: a replaced store may still be open in this process, and would write under its old path.
        self._last_number += 1
        place = self.path / f"building-{self._last_number}"
        place.mkdir()
        return place

    def drop_buildings(self) -> None:
        for place in self._places("building"):
            _delete(place)

    def adopt(self, building: Path) -> Path:
        """Makes a whole building the current store, safe on disk, and deletes older stores; its new path."""
        # RocksDB has synced its own files, but rocksdict writes another file beside them.
        for path in (*building.iterdir(), building):
            self._sync(path)
        # Only now: a power cut must not leave the marker beside files that are not whole.
        marker = building / "complete"
        marker.touch()
        self._sync(marker)
        self._sync(building)
        return self._renamed(building)

    def condemn(self) -> None:
        """The current store is not the fold of the topic: it must not be opened again, not even after a crash."""
        current = self.current
        if current is not None:
            (current / _OUTDATED).touch()
            self._sync(current)

    def set_aside(self) -> None:
        """The current store is damaged: it is kept for a person to look at, and replaces an earlier damaged one."""
        current = self.current
        if current is None:
            return
        # One step: after a crash the store is either current or set aside.
        damaged = current.rename(self.path / f"damaged-{_number(current)}")
        self._sync(self.path)
        self._drop_damaged(but=damaged)

    def make_room(self) -> None:
        """Deletes damaged stores, which are only kept for a person to look at."""
        self._drop_damaged()

    @property
    def has_room(self) -> bool:
        """Whether the disk has space to open the current store and to continue."""
        logs = 0
        for log in self.current.glob("*.log") if self.current is not None else ():
            # RocksDB may delete a log at any moment.
            with suppress(FileNotFoundError):
                logs += log.stat().st_size
        # RocksDB writes the contents of its logs once more when it opens a store.
        return shutil.disk_usage(self.path).free >= logs + _SPARE_BYTES

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        place = self.path / f"scratch-{uuid4().hex[:8]}"
        place.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place)

    def close(self) -> None:
        self._lock.close()

    def _settle(self) -> None:
        for building in self._places("building"):
            if (building / "complete").exists():
                # Killed between the marker and the rename.
                self._renamed(building)
        self.drop_buildings()
        for scratch in self.path.glob("scratch-*"):
            shutil.rmtree(scratch)
        self._drop_older_stores()
        self._drop_damaged(but=max(self._places("damaged"), key=_number, default=None))

    def _renamed(self, building: Path) -> Path:
        # Rename last: a folder with the name of a store is a whole store.
        store = building.rename(self.path / f"store-{_number(building)}")
        self._sync(self.path)
        self._drop_older_stores()
        return store

    def _places(self, kind: Literal["store", "building", "damaged"]) -> list[Path]:
        # Only folders: a user may have packed a damaged store into a file beside it.
        return [p for p in self.path.glob(f"{kind}-*") if p.is_dir() and p.name.removeprefix(f"{kind}-").isdigit()]

    def _drop_damaged(self, but: Path | None = None) -> None:
        for damaged in self._places("damaged"):
            if damaged != but:
                _delete(damaged)

    def _drop_older_stores(self) -> None:
        newest = self.current
        for store in self._places("store"):
            if store != newest:
                _delete(store)


def _delete(place: Path) -> None:
    """RocksDB may delete files of the same folder at that moment, where an unfinished scan keeps it open."""
    while place.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(place)


def _number(place: Path) -> int:
    return int(place.name.partition("-")[2])


def _held(path: Path) -> IO[str]:
    lock = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "another one"
        lock.close()
        if owner == str(os.getpid()):
            raise ReplicaUnusable(f"{path.parent} is open in this process already: close that replica first") from None
        raise ReplicaUnusable(
            f"{path.parent} is in use by process {owner}: stop that process, or give this one another folder"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
