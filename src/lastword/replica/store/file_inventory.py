"""The files that a store must have: RocksDB itself does not notice every missing file.

RocksDB notices a bad block and a missing table file. It does not notice that the newest part of its MANIFEST is gone,
nor that a whole write-ahead log is: it then opens with some of the rows, beside a position that is past them. So the
size of the MANIFEST and the logs are noted beside the store whenever they change, and compared before it is opened.

After a crash the note may be a moment old. A MANIFEST only grows, and a log is removed only after the MANIFEST has
grown. So a shorter MANIFEST is damage. A missing log is damage too if the MANIFEST is unchanged.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

FILE = "inventory.json"

# Listing the files takes some microseconds, and a whole commit may take no longer.
_LOOK_EVERY_S = 0.2


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a whole store; `logs` has the size of each write-ahead log except the one being written."""

    manifest: str
    manifest_bytes: int
    logs: dict[str, int]


class InventoryNote:
    """Keeps the note beside a store up to date while the store is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noted: Inventory | None = None
        self._look_at = 0.0

    def keep(self) -> None:
        """Writes the note again if the files have changed; checks at most five times a second."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self.keep_now()

    def keep_now(self) -> None:
        found = _inventory(self._folder)
        if found is None or found == self._noted:
            return
        half_written = self._folder / f"{FILE}.new"
        half_written.write_bytes(msgspec.json.encode(found))
        # Not synced. After a power cut the note may be older than the files, and then asks for less; or a log that was
        # closed may be shorter than the note says, and then the store is not whole.
        half_written.replace(self._folder / FILE)
        self._noted = found


def missing_part(folder: Path) -> str | None:
    """The noted file or bytes that the store lacks, in words; None when nothing is known to be missing."""
    try:
        noted = msgspec.json.decode((folder / FILE).read_bytes(), type=Inventory)
    except (FileNotFoundError, msgspec.MsgspecError):
        # A new store has none, and after a power cut it may be empty.
        return None
    except OSError as failure:
        return f"{FILE} can't be read ({failure.strerror})"
    found = _inventory(folder)
    if found is None:
        return "CURRENT, or the MANIFEST that it names, is missing"
    if found.manifest != noted.manifest:
        # RocksDB begins a new one whenever it opens a store, and may have been killed right after.
        return None if _in_order(found.manifest) > _in_order(noted.manifest) else f"{noted.manifest} is missing"
    if found.manifest_bytes < noted.manifest_bytes:
        return f"{found.manifest} was {noted.manifest_bytes} bytes long and now has {found.manifest_bytes}"
    if found.manifest_bytes > noted.manifest_bytes:
        return None
    for log, size in noted.logs.items():
        now = _size(folder / log)
        if now < size:
            return f"{log} was {size} bytes long and now has {now}" if now >= 0 else f"{log} is missing"
    return None


def _inventory(folder: Path) -> Inventory | None:
    try:
        manifest = (folder / "CURRENT").read_text("ascii").strip()
        # Before the names: a change by RocksDB in between makes the note ask for less, not for more.
        size = _size(folder / manifest) if manifest else -1
        names = os.listdir(folder)  # noqa: PTH208  often, and only the names
    except (OSError, UnicodeDecodeError):
        return None
    if size < 0:
        return None
    # Except the newest, which grows: without its end the store lacks its newest commits, and is only behind.
    closed = sorted((name for name in names if name.endswith(".log")), key=_in_order)[:-1]
    sizes = {log: _size(folder / log) for log in closed}
    return Inventory(manifest=manifest, manifest_bytes=size, logs={log: n for log, n in sizes.items() if n >= 0})


def _in_order(name: str) -> tuple[int, str]:
    """Names that differ in a number of six digits or more."""
    return len(name), name


def _size(file: Path) -> int:
    """The file's size, -1 when it is not there."""
    try:
        return file.stat().st_size
    except OSError:
        return -1
