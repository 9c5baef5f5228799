"""How soon a killed pipeline commits again: `lastword run` is killed and restarted while users are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.background import end, last_line, running, started
from benchmarks.measuring.commands import lastword
from benchmarks.measuring.plan import Plan
from benchmarks.pipeline.topics import RATE, PipelineTopics, users_command
from lastword.core.errors import LastwordError
from lastword.kafka.client.reading import follow, log_bounds
from lastword.pipeline.running.progress import PartitionProgress

_PATIENCE_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Seconds from a kill until a new process had taken over, and until it had committed results."""

    to_takeover: float
    to_commit: float


def recoveries(plan: Plan, topics: PipelineTopics, home: Path, master: str) -> list[Recovery]:
    """One recovery for each round of the plan."""
    servers, output = topics.connection.bootstrap_servers, home / "run.log"
    command = lastword("run", str(topics.file(home)), "--master", master, "--bootstrap-servers", servers)
    jars = {"LASTWORD_JARS": str(plan.jars)}
    users = users_command(topics.connection, topics.users, "--rate", str(RATE))
    measured: list[Recovery] = []
    with running(users, home, home / "users.log"):
        process = started(command, home, output, jars)
        try:
            commits = Commits(topics)
            commits.next_generation()
            for number in range(plan.rounds):
                plan.report(f"pipeline: kill -9, {number + 1} of {plan.rounds}")
                killed = time.monotonic()
                process.kill()
                process.wait()
                process = started(command, home, output, jars)
                taken, committed = commits.next_generation()
                measured.append(Recovery(to_takeover=taken - killed, to_commit=committed - killed))
        except LastwordError as failure:
            raise LastwordError(f"{failure}; the last line of lastword run: {last_line(output)}") from None
        finally:
            end(process)
    return measured


class Commits:
    """The commits of a pipeline in its changelog, for a reader of committed data."""

    def __init__(self, topics: PipelineTopics) -> None:
        self._topics = topics
        self._generation = 0
        self._records = self._followed()

    def next_generation(self) -> tuple[float, float]:
        """When a driver had taken over (its first record), and when it had advanced in any partition."""
        taken, begins = None, dict[int, int]()
        for partition, progress in self._records:
            if progress.generation <= self._generation:
                continue
            taken = taken or time.monotonic()
            if progress.next_offset > begins.setdefault(partition, progress.next_offset):
                self._generation = progress.generation
                return taken, time.monotonic()
        raise LastwordError(f"benchmark: no commit of {self._topics.app} came for {_PATIENCE_S:.0f} s")

    def _followed(self) -> Iterator[tuple[int, PartitionProgress]]:
        """Ends when no record has come for long."""
        connection, changelog = self._topics.connection, self._topics.changelog
        give_up_at = time.monotonic() + _PATIENCE_S
        while changelog not in connection.reach().topics:
            if time.monotonic() > give_up_at:
                return
            time.sleep(0.1)
        for records in follow(connection, changelog, start=log_bounds(connection, changelog)[0]):
            if records:
                give_up_at = time.monotonic() + _PATIENCE_S
            elif time.monotonic() > give_up_at:
                return
            for record in records:
                yield record.partition, PartitionProgress.from_json(record.value or b"")
