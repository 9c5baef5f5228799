"""What a process and its children took of the machine: memory at their peak, and processors."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.cpu_time import cpu_seconds

_EVERY_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Usage:
    """None where the system has no /proc to ask."""

    peak_mb: float | None
    cpu_s: float | None


class Watched:
    """Watches a process until `end`: the sums of the peaks and of the CPU times of it and of all that it started.

    The sum of peaks is never less than what was in use at once. Each process's own peak is kept by the kernel, so it
    is enough to look now and then. `ru_maxrss` won't do: it starts at the size of whoever started the process, and of
    several children it gives the largest only. What a process used since it was last looked at is not counted.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks: dict[int, int] = {}
        self._cpu: dict[int, float] = {}
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def end(self) -> Usage:
        self._ended.set()
        self._watching.join()
        return Usage(peak_mb=sum(self._peaks.values()) / 1e6 or None, cpu_s=sum(self._cpu.values()) or None)

    def _watch(self) -> None:
        while True:
            for pid in family_of(self._pid):
                self._peaks[pid] = max(self._peaks.get(pid, 0), _peak_of(pid))
                if (used := cpu_seconds(pid)) is not None:
                    self._cpu[pid] = used
            if self._ended.wait(_EVERY_SECONDS):
                return


def family_of(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for parent in found:  # grows while it is walked
        with suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def _peak_of(pid: int) -> int:
    """In bytes; 0 for a process that is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
