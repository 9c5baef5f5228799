"""How two commands take turns: A B A B, each a process, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measuring.commands import environment, name_of
from benchmarks.measuring.memory import ResourceWatch
from benchmarks.measuring.plan import Plan
from lastword.core.errors import LastwordError

_Done = TypeVar("_Done")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One finished process: when it began (monotonic), its wall time, its memory and CPU, and its output."""

    began: float
    seconds: float
    output: str
    # Both include the children. `peak_mb` is None where the system has no /proc.
    peak_mb: float | None
    cpu_s: float

    @property
    def answer(self) -> dict[str, Any]:
        """The JSON that the process printed."""
        answer: dict[str, Any] = json.loads(self.output)
        return answer


def run(command: list[str], home: Path, output: Path | None = None) -> Run:
    """Runs a command to its end; its output goes to `output` if that is given. An interrupt ends the whole command."""
    with (output or Path(os.devnull)).open("wb") as file:
        began, before = time.monotonic(), _cpu_of_ended()
        process = subprocess.Popen(
            command,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=file if output else subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that its children can be ended with it
        )
        watch = ResourceWatch(process.pid)
        try:
            printed, complaint = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        finally:
            usage = watch.end()
        seconds = time.monotonic() - began
    if process.returncode != 0:
        reason = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise LastwordError(f"benchmark: {name_of(command)} ended with {process.returncode}: {reason[0]}")
    # The kernel counts the CPU of processes that were waited for to their end; `usage` has the others, as last seen.
    cpu_s = max(usage.cpu_s or 0.0, _cpu_of_ended() - before)
    return Run(began=began, seconds=seconds, output=(printed or b"").decode(), peak_mb=usage.peak_mb, cpu_s=cpu_s)


def _cpu_of_ended() -> float:
    """CPU seconds of all children of this process that have ended, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interleaved(plan: Plan, title: str, steps: Mapping[str, Callable[[], _Done]]) -> dict[str, list[_Done]]:
    """The runs of each step: every round plays each step once. A first round warms up and is dropped."""
    runs: dict[str, list[_Done]] = {name: [] for name in steps}
    for number in range(plan.rounds + 1):
        for name, step in steps.items():
            plan.report(f"{title}: {name}, {f'round {number} of {plan.rounds}' if number else 'warming up'}")
            done = step()
            if number:
                runs[name].append(done)
    return runs
