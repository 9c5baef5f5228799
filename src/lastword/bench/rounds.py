"""How two commands take turns: A B A B, each a process of its own, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from lastword.bench.memory import Watched
from lastword.core.errors import BadInput, LastwordError
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic

PARTITIONS = 3

_Done = TypeVar("_Done")


class LeftOut(LastwordError):
    """An alternative that this machine can't run: what, and the reason."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure on: how many records and rounds, where things are kept, and whom to tell how far it is."""

    records: int
    rounds: int
    home: Path
    jars: Path
    tell: Callable[[str], None]
    # None: a local cluster of the benchmark's own, gone with it.
    bootstrap_servers: str | None = None

    def __post_init__(self) -> None:
        if self.records < 1 or self.rounds < 1:
            raise BadInput("--records and --rounds: from 1 on")

    @property
    def options(self) -> str:
        given = " --bootstrap-servers HOST:PORT" if self.bootstrap_servers else ""
        return f"--records {self.records} --rounds {self.rounds}{given}"

    @contextmanager
    def cluster(self) -> Iterator[Connection]:
        if self.bootstrap_servers:
            yield Connection(bootstrap_servers=self.bootstrap_servers)
            return
        with LocalCluster.fresh(self.jars, "bench") as local:
            self.tell("starting a cluster")
            yield Connection(bootstrap_servers=local.start(port=0).bootstrap_servers)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One finished process: when it began (monotonic), its wall time, what it took, and what it printed."""

    began: float
    seconds: float
    output: str
    # Both with its children's. None where the system does not tell.
    peak_mb: float | None
    cpu_s: float

    @property
    def answer(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.output)
        return told


def run(command: list[str], home: Path, output: Path | None = None) -> Run:
    """Runs a command to its end; its output goes to a file where one is given. Interrupted, it ends all of it."""
    with (output or Path(os.devnull)).open("wb") as file:
        began, before = time.monotonic(), _cpu_of_ended()
        process = subprocess.Popen(
            command,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=file if output else subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # or what it started itself could not be ended with it
        )
        watched = Watched(process.pid)
        try:
            told, complaint = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        finally:
            usage = watched.end()
        seconds = time.monotonic() - began
    if process.returncode != 0:
        reason = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise LastwordError(f"benchmark: {name_of(command)} ended with {process.returncode}: {reason[0]}")
    # Of those that were waited for it is known to the end, of the others until they were last seen.
    cpu_s = max(usage.cpu_s or 0.0, _cpu_of_ended() - before)
    return Run(began=began, seconds=seconds, output=(told or b"").decode(), peak_mb=usage.peak_mb, cpu_s=cpu_s)


def _cpu_of_ended() -> float:
    """Of all children of this process that have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def name_of(command: list[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:3]])


def interleaved(plan: Plan, what: str, steps: Mapping[str, Callable[[], _Done]]) -> dict[str, list[_Done]]:
    """The runs of each step, in rounds that play every step once; a first round warms everything up and is dropped."""
    runs: dict[str, list[_Done]] = {name: [] for name in steps}
    for number in range(plan.rounds + 1):
        for name, step in steps.items():
            plan.tell(f"{what}: {name}, {f'round {number} of {plan.rounds}' if number else 'warming up'}")
            done = step()
            if number:
                runs[name].append(done)
    return runs


@contextmanager
def fresh_topic(
    connection: Connection,
    name: str,
    *,
    partitions: int = PARTITIONS,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    create_topic(connection, name, partitions=partitions, settings=dict(settings))
    try:
        yield name
    finally:
        delete_topic(connection, name)


def lastword(*words: str) -> list[str]:
    """The command line as a user runs it."""
    return [str(Path(sys.executable).parent / "lastword"), *words]


def alternative(module: str, *words: str) -> list[str]:
    return python("alternatives." + module, *words)


def python(module: str, *words: str) -> list[str]:
    """A module of this room as a process of its own."""
    return [sys.executable, "-m", f"lastword.bench.{module}", *words]


def environment(home: Path) -> dict[str, str]:
    """This process's, without what would make the two sides differ: settings of lastword's, and no compiled files."""
    dropped = ("LASTWORD_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "LASTWORD_HOME": str(home)}
