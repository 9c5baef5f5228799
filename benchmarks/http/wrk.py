"""wrk as the one who asks: point reads of random keys over kept-alive connections."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from benchmarks.http.servers import ROWS, HttpProcess
from benchmarks.measuring.cpu_time import cpu_seconds
from benchmarks.measuring.rounds import run
from lastword.core.errors import BadInput, LastwordError

CONNECTIONS = 64

_SCRIPT = Path(__file__).with_name("point_reads.lua")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of one load: every request was answered with a row."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    # Of the server, meanwhile; None where the system does not tell.
    cpu_s: float | None

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, kw_only=True)
class Wrk:
    program: str
    home: Path
    seconds: int

    def ask(self, server: HttpProcess, *, pause_ms: int = 0) -> Asked:
        """Reads for so many seconds; LastwordError when a single request was not answered with a row."""
        before = cpu_seconds(server.pid)
        done = run([*self._command(server.port), *_words(server, pause_ms)], self.home)
        after = cpu_seconds(server.pid)
        told = json.loads(done.output.strip().splitlines()[-1])
        refused, broken = told.pop("refused"), told.pop("broken")
        if refused or broken:
            raise LastwordError(
                f"benchmark: of {told['requests']} reads from {server.who}, {refused} were refused, {broken} cut off"
            )
        return Asked(**told, cpu_s=None if before is None or after is None else after - before)

    def _command(self, port: int) -> list[str]:
        # One thread: on a machine of two cores a second one would take the server's.
        options = ["--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{self.seconds}s"]
        return [self.program, *options, "--timeout", "10s", "--script", str(_SCRIPT), f"http://127.0.0.1:{port}", "--"]


def found_wrk(home: Path, seconds: int) -> Wrk:
    """BadInput where there is none: without it nothing here can be measured."""
    program = shutil.which("wrk")
    if program is None:
        raise BadInput("bench http needs wrk, which is not on the PATH: run  apt-get install wrk nginx")
    return Wrk(program=program, home=home, seconds=seconds)


def _words(server: HttpProcess, pause_ms: int) -> list[str]:
    numbers = server.numbers
    return [ROWS + quote("user-", safe=""), str(len(numbers)), str(numbers.step), str(pause_ms)]
