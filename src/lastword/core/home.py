"""The home: the folder of clusters, logs, jars, replicas and the journal, readable by its owner alone."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from lastword.core.errors import BadInput


def default_home() -> Path:
    """`LASTWORD_HOME` if set, else the platform's folder for a user's data."""
    chosen = os.environ.get("LASTWORD_HOME")
    if chosen:
        return _expanded("LASTWORD_HOME", chosen)
    return _platform_home()


def _platform_home() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lastword"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "lastword"


def default_jars(home: Path) -> Path:
    """`LASTWORD_JARS` if set, else a folder of the home: jars are shared by every cluster and checkout."""
    chosen = os.environ.get("LASTWORD_JARS")
    return _expanded("LASTWORD_JARS", chosen) if chosen else home / "jars"


def private_folder(folder: Path) -> None:
    """Makes the folder and its missing parents for their owner alone; closes an existing folder to others.

    Of existing parents only the platform's default home is closed: a folder that somebody chose may hold other things.
    A folder that can't be closed (another user's, or on a file system without modes) stays as it is.
    """
    missing = [each for each in folder.parents if not each.exists()]
    for each in (*reversed(missing), folder):
        # Private from the start, whatever the umask. Another process may be making the same folder.
        each.mkdir(mode=0o700, exist_ok=True)
    home = _platform_home()
    for each in (folder, *(parent for parent in folder.parents if parent == home)):
        mode = each.stat().st_mode
        if mode & 0o077:
            with suppress(OSError):
                each.chmod(mode & 0o7700)


def _expanded(variable: str, text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as unknown:
        raise BadInput(f"{variable}={text}: {unknown}: set {variable} to the path of a folder") from None
