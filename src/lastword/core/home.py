"""Where lastword keeps what it keeps: clusters, logs, jars and the journal, all under one home."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lastword.core.errors import BadInput


def default_home() -> Path:
    """`LASTWORD_HOME` if set, else the platform's place for a user's data."""
    chosen = os.environ.get("LASTWORD_HOME")
    if chosen:
        return _expanded("LASTWORD_HOME", chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lastword"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "lastword"


def default_jars(home: Path) -> Path:
    """`LASTWORD_JARS` if set, else a folder of the home: jars are shared by every cluster and checkout."""
    chosen = os.environ.get("LASTWORD_JARS")
    return _expanded("LASTWORD_JARS", chosen) if chosen else home / "jars"


def _expanded(variable: str, text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as unknown:
        raise BadInput(f"{variable}={text}: {unknown}: give a folder") from None
