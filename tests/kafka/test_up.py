"""Parts on a real cluster, kept by a supervisor: each may be killed, and all of them at once.

Without the pipeline, which needs Spark: with it they are in tests/spark.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lastword.core.errors import ClusterUnreachable
from lastword.demo.topics import make_fraud_topics
from lastword.kafka.connection import Connection
from lastword.kafka.local import LocalCluster
from lastword.kafka.ports import PortPicker
from lastword.kafka.reading import log_bounds
from lastword.pipeline.topics import make_own_topics
from lastword.up import teams
from lastword.up.upkeep import Upkeep
from support.command_line import JARS, CommandLine
from support.processes import started_with
from support.waiting import eventually


def left_of(line: CommandLine) -> list[str]:
    """The processes that run in its home, whatever they are."""
    return started_with(f"LASTWORD_HOME={line.home}")


@dataclass(frozen=True, kw_only=True)
class House:
    """A home in which a cluster, generated users and HTTP run."""

    line: CommandLine
    upkeep: Upkeep
    connection: Connection

    @classmethod
    def start(cls, line: CommandLine) -> House:
        """As `up` does it."""
        line("up", "--cluster-only", "--detach", "--port", "0")
        cluster = LocalCluster.at(line.home, JARS)
        assert cluster.spec is not None
        servers = cluster.spec.bootstrap_servers
        connection = Connection(bootstrap_servers=servers)
        make_fraud_topics(connection)
        make_own_topics(connection, teams.pipeline())
        with PortPicker() as ports:
            choices = teams.Choices(http_port=ports.free(), rate=20)
        wanted = teams.wanted(cluster, choices, token_file=None, is_owned=False)
        without_spark = tuple(part for part in wanted.parts if part.name != teams.PIPELINE)
        upkeep = Upkeep(folder=line.home / "up")
        upkeep.start(replace(wanted, parts=without_spark), line.environment())
        return cls(line=line, upkeep=upkeep, connection=connection)

    def status(self) -> dict[str, dict[str, Any]]:
        told = self.line.run("status", "--json").stdout
        return {row["part"]: row for row in map(json.loads, told.splitlines())}

    def all_run(self) -> bool:
        return self.line.run("status").returncode == 0

    def kill(self, name: str) -> int:
        pid = int(self.status()[name]["pid"])
        os.kill(pid, signal.SIGKILL)
        return pid

    def users_written(self) -> int | None:
        """None while no broker answers."""
        try:
            return sum(log_bounds(self.connection, "new_users")[1].values())
        except ClusterUnreachable:
            return None

    def more_users_come(self) -> int:
        """How many there were before these."""
        eventually(lambda: self.users_written() is not None)
        before = self.users_written() or 0
        eventually(lambda: (self.users_written() or 0) > before)
        return before


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Each test leaves it running, and `down` leaves nothing of it."""
    line = CommandLine(home=tmp_path_factory.mktemp("house"))
    made = House.start(line)
    try:
        eventually(made.all_run)
        yield made
        assert line("down").splitlines() == ["ended users, serve", "1 broker(s) stopped"]
        assert line("down") == "nothing was running\n"
    finally:
        line.run("down")
        eventually(lambda: left_of(line) == [])


def is_again(house: House, name: str, gone: int) -> Callable[[], bool]:
    return lambda: house.status().get(name, {}).get("pid") not in (None, gone)


def test_a_part_or_the_broker_that_is_killed_is_started_again_and_shown(house: House) -> None:
    for name in ("serve", "users", "broker"):
        gone = house.kill(name)
        eventually(is_again(house, name, gone))
        row = house.status()[name]
        assert row["restarts"] == 1
        assert row["last_exit"]["told"].startswith("was ended by SIGKILL" if name != "broker" else "ended: broker 1 is")
    house.more_users_come()
    # On a busy machine the users may have given up on a broker that was away for long: they come again, too.
    eventually(house.all_run)
    assert "serve was ended by SIGKILL, at 20" in house.line("status")


def test_after_a_kill_of_everything_the_next_start_goes_on(house: House) -> None:
    written = house.more_users_come()
    for process in left_of(house.line):
        os.kill(int(process.split()[0]), signal.SIGKILL)
    eventually(lambda: left_of(house.line) == [])
    assert house.line.run("status").returncode == 3

    again = House.start(house.line)

    eventually(again.all_run)
    assert again.more_users_come() >= written
    assert again.line("count", "user-profiles") == "10\n"


def test_the_cluster_of_a_running_up_is_not_stopped_under_it(house: House) -> None:
    refused = house.line.run("broker", "stop")
    assert (refused.returncode, refused.stderr) == (
        2,
        "lastword: cluster default is kept running by  lastword up : end all of it with  lastword down\n",
    )
    assert house.all_run()
