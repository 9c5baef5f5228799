"""A replica's folder: one owner, one whole store, and at most one in the making.

    owner.lock    held by the process that writes here, with its pid inside
    store-7/      the store; a higher number is a newer one, and one with a file `outdated` in it is none any more
    building-8/   a store in the making; with a file `complete` in it, it is whole and becomes store-8 by a rename
    scratch-*/    files of a pass over the log

What a crash left behind (a building without `complete`, an older store, scratch) is deleted at the next start. The
folder is renamed last, and a store that readers still have open keeps a name of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

from lastword.core.durable import sync
from lastword.core.errors import ReplicaUnusable

_LOCK = "owner.lock"
_OUTDATED = "outdated"


class ReplicaFolder:
    """The folder, held by this process until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / _LOCK).exists() and any(path.iterdir()):
                raise ReplicaUnusable(f"{path} is not empty and holds no replica: give an empty folder, or a new one")
            self._lock = _held(path / _LOCK)
        except OSError as refusal:
            raise ReplicaUnusable(f"{path}: {refusal.strerror or refusal}: give another folder") from None
        self._settle()

    @property
    def current(self) -> Path | None:
        """The newest whole store, or None before the first one is built."""
        return max((p for p in self._stores() if not (p / _OUTDATED).exists()), key=_number, default=None)

    def new_building(self) -> Path:
        self.drop_buildings()
        newest = max(map(_number, self._stores()), default=0)
        place = self.path / f"building-{newest + 1}"
        place.mkdir()
        return place

    def drop_buildings(self) -> None:
        for place in self.path.glob("building-*"):
            shutil.rmtree(place)

    def adopt(self, building: Path) -> Path:
        """The place of a whole building among the stores, safe on the disk; those before it go."""
        # RocksDB has synced its own files, but rocksdict keeps one of its own beside them.
        for path in (*building.iterdir(), building):
            sync(path)
        # Only now: a power cut must not leave the marker beside files that are not whole.
        marker = building / "complete"
        marker.touch()
        sync(marker)
        sync(building)
        return self._renamed(building)

    def condemn(self) -> None:
        """The current store is no fold of what is in the topic: nobody shall find it, not after a crash either."""
        current = self.current
        if current is not None:
            (current / _OUTDATED).touch()
            sync(current)

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
        for building in self.path.glob("building-*"):
            if (building / "complete").exists():
                # Killed between the marker and the rename.
                self._renamed(building)
        self.drop_buildings()
        for scratch in self.path.glob("scratch-*"):
            shutil.rmtree(scratch)
        self._drop_older_stores()

    def _renamed(self, building: Path) -> Path:
        # Rename last: whoever finds a store may trust it.
        store = building.rename(self.path / f"store-{_number(building)}")
        sync(self.path)
        self._drop_older_stores()
        return store

    def _stores(self) -> list[Path]:
        return list(self.path.glob("store-*"))

    def _drop_older_stores(self) -> None:
        newest = self.current
        for store in self._stores():
            if store != newest:
                shutil.rmtree(store)


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
