"""The peak memory and the CPU time of a process and its children."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.cpu_time import cpu_seconds

_EVERY_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Each is None where the system has no /proc."""

    peak_mb: float | None
    cpu_s: float | None


class ResourceWatch:
    """Watches a process and its children until `end`: the sum of their memory peaks, and of their CPU times.

    The sum of the peaks is never less than the memory in use at one moment. The kernel keeps the peak of each process,
    so it is enough to look now and then. `ru_maxrss` won't do: it starts at the size of the parent process, and for
    several children it gives only the largest. CPU time after the last look at a process is not counted.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks: dict[int, int] = {}
        self._cpu: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> Usage:
        self._ended.set()
        self._thread.join()
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
    """The process and all its descendants."""
    pids = [pid]
    for parent in pids:  # the list grows during the loop
        with suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
    return pids


def _peak_of(pid: int) -> int:
    """In bytes; 0 for a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
