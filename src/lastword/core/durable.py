"""Files that are whole or not there: written beside their place, synced, and renamed last."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, content: bytes, *, shared: bool = False) -> None:
    """The file with this content, safe on the disk on return; a crash leaves the old one or the new one.

    Nobody but its owner can read it, at no moment; one that is `shared` whoever the umask lets.
    """
    half_written = path.with_name(f"{path.name}.new")
    half_written.unlink(missing_ok=True)
    with open(half_written, "xb", opener=None if shared else _private) as file:
        file.write(content)
    sync(half_written)
    # Rename last: whoever finds the file may trust it.
    half_written.replace(path)
    sync(path.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync(path: Path) -> None:
    """A file's content, or a folder's names, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
