"""wrk as the client: point reads of random keys over kept-alive connections."""

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
class LoadResult:
    """The result of one load; every request was answered with a row."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    # CPU time of the server during the load; None where the system has no /proc.
    cpu_s: float | None

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, kw_only=True)
class Wrk:
    program: str
    home: Path
    seconds: int

    def ask(self, server: HttpProcess, *, pause_ms: int = 0) -> LoadResult:
        """Reads for `seconds`; LastwordError if one request was not answered with a row."""
        before = cpu_seconds(server.pid)
        done = run([*self._command(server.port), *_script_arguments(server, pause_ms)], self.home)
        after = cpu_seconds(server.pid)
        result = json.loads(done.output.strip().splitlines()[-1])
        refused, broken = result.pop("refused"), result.pop("broken")
        if refused or broken:
            raise LastwordError(
                f"benchmark: of {result['requests']} reads from {server.who}, {refused} were refused, {broken} cut off"
            )
        return LoadResult(**result, cpu_s=None if before is None or after is None else after - before)

    def _command(self, port: int) -> list[str]:
        # One thread: on a machine with two cores a second thread would use the server's core.
        options = ["--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{self.seconds}s"]
        return [self.program, *options, "--timeout", "10s", "--script", str(_SCRIPT), f"http://127.0.0.1:{port}", "--"]


def found_wrk(home: Path, seconds: int) -> Wrk:
    """BadInput if wrk is not installed: without it nothing here can be measured."""
    program = shutil.which("wrk")
    if program is None:
        raise BadInput("the benchmark http needs wrk, which is not on the PATH: run  apt-get install wrk nginx")
    return Wrk(program=program, home=home, seconds=seconds)


def _script_arguments(server: HttpProcess, pause_ms: int) -> list[str]:
    numbers = server.numbers
    return [ROWS + quote("user-", safe=""), str(len(numbers)), str(numbers.step), str(pause_ms)]
