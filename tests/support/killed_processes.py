"""Processes that tests kill and restart."""

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
    """A process that runs a pipeline, restarted by `keep` when it has ended; its output is in a file."""

    def __init__(self, start: Callable[[int], subprocess.Popen[str]], log: Path) -> None:
        """`start` gets the descriptor for the output of the process."""
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
        """Ends the process as a user does, and gives its output; it must succeed."""
        self.keep()
        self._process.terminate()
        code, output = self._process.wait(_LONG_S), self._log.read_text()
        assert code == 0, output
        return output

    def _started(self) -> subprocess.Popen[str]:
        with self._log.open("w") as log:
            return self._start(log.fileno())

    def _kill_below(self, text: str) -> None:
        """Kills the newest descendant with the text, if there is one yet."""
        for pid in with_text(family_of(self._process.pid), text)[-1:]:
            os.kill(pid, signal.SIGKILL)


def with_text(pids: list[int], text: str) -> list[int]:
    """The processes whose command line contains the text."""
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in sorted(pids)}
    return [pid for pid, command in commands.items() if command.exists() and text in command.read_text()]


def kill_executor() -> None:
    """Kills one of the executors among the descendants of this process."""
    for pid in with_text(family_of(os.getpid()), "CoarseGrainedExecutorBackend")[:1]:
        os.kill(pid, signal.SIGKILL)


def kill_broker(cluster: LocalCluster) -> None:
    (broker,) = cluster.status()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
