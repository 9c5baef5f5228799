"""Files that are complete or absent: written under another name, synced, and renamed last."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, content: bytes, *, shared: bool = False) -> None:
    """Writes the file and syncs it to the disk; a crash leaves the old file or the new one.

    Only the owner can ever read it, unless `shared`: then the umask decides.
    """
    half_written = path.with_name(f"{path.name}.new")
    half_written.unlink(missing_ok=True)
    with open(half_written, "xb", opener=None if shared else _private) as file:
        file.write(content)
    sync(half_written)
    # Rename last: a file that exists under its name is complete.
    half_written.replace(path)
    sync(path.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync(path: Path) -> None:
    """Writes a file's content, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
