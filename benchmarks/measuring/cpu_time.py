"""How much of the processors a process has taken."""

from __future__ import annotations

import os
from pathlib import Path

# After the name in brackets, which may have blanks in it: the state is the first.
_USER, _SYSTEM = 11, 12


def cpu_seconds(pid: int) -> float | None:
    """Of all its threads since its start; None where the system has no /proc to ask."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(words[_USER]) + int(words[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
