"""The CPU time of a process."""

from __future__ import annotations

import os
from pathlib import Path

# Indexes among the fields after the process name. The name is in brackets and may contain blanks.
_USER, _SYSTEM = 11, 12


def cpu_seconds(pid: int) -> float | None:
    """CPU seconds of all its threads since its start; None where the system has no /proc."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(words[_USER]) + int(words[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
