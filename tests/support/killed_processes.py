"""Processes that are killed, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring.memory import family_of
from lastword.kafka.broker.local_cluster import LocalCluster

_LONG_S = 180


class Driver:
    """A process that runs a pipeline and is started again whenever it is gone; what it says is in a file."""

    def __init__(self, start: Callable[[int], subprocess.Popen[str]], log: Path) -> None:
        """`start` is told the descriptor that its output goes to."""
        self._start = start
        self._log = log
        self._process = self._started()

    def keep(self) -> None:
        if self._process.poll() is not None:
            self._process = self._started()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill_jvm(self) -> None:
        self._kill_below("org.apache.spark.deploy.SparkSubmit")

    def kill_worker(self) -> None:
        self._kill_below("pyspark.worker")

    def end(self) -> str:
        """Ends it as a user does, and gives what it has said; it must end well."""
        self.keep()
        self._process.terminate()
        code, said = self._process.wait(_LONG_S), self._log.read_text()
        assert code == 0, said
        return said

    def _started(self) -> subprocess.Popen[str]:
        with self._log.open("w") as log:
            return self._start(log.fileno())

    def _kill_below(self, text: str) -> None:
        """The last started one, if there is any yet."""
        for pid in with_text(family_of(self._process.pid), text)[-1:]:
            os.kill(pid, signal.SIGKILL)


def with_text(pids: list[int], text: str) -> list[int]:
    """Those whose command line has the text."""
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in sorted(pids)}
    return [pid for pid, command in commands.items() if command.exists() and text in command.read_text()]


def kill_executor() -> None:
    """One of the executors that this process, through others, has started."""
    for pid in with_text(family_of(os.getpid()), "CoarseGrainedExecutorBackend")[:1]:
        os.kill(pid, signal.SIGKILL)


def kill_broker(cluster: LocalCluster) -> None:
    (broker,) = cluster.status()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
