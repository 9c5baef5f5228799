"""Parts on a real cluster, kept by a supervisor: each may be killed, and all of them at once.

Without the pipeline, which needs Spark: with it they are in tests/spark.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from lastword.cli.local.try_commands import try_lines
from lastword.core.errors import ClusterUnreachable
from lastword.demo.people import TABLE
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.pipeline.running.own_topics import make_own_topics
from lastword.processes.ports import PortPicker
from lastword.teams import parts as teams
from lastword.teams.scenario import TeamsScenario
from lastword.teams.users.fraud_topics import make_fraud_topics
from lastword.up.control import Upkeep
from lastword.up.http_tokens import http_tokens
from lastword.up.scenario import desired_state
from support.command_line import JARS, CommandLine
from support.processes import started_with
from support.up_suggestions import run_pasted, suggested_commands
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
    # What `up` said of the cluster alone.
    said: str

    @classmethod
    def start(cls, line: CommandLine, *security: str) -> House:
        """As `up` does it."""
        said = line("up", "--cluster-only", "--detach", "--port", "0", *security)
        cluster = LocalCluster.at(line.home, JARS)
        connection = cluster.connection
        make_fraud_topics(connection)
        make_own_topics(connection, teams.pipeline())
        with PortPicker() as ports:
            choices = teams.Choices(http_port=ports.free(), rate=20)
        tokens = http_tokens(line.home / "up", is_locked=bool(security))
        with closing(TeamsScenario(choices, tokens, profiles=TABLE)) as scenario:
            wanted = desired_state(cluster, scenario, is_owned=False)
        without_spark = tuple(part for part in wanted.parts if part.name != teams.PIPELINE)
        upkeep = Upkeep(folder=line.home / "up")
        upkeep.start(replace(wanted, parts=without_spark), line.environment())
        return cls(line=line, upkeep=upkeep, connection=connection, said=said)

    def status(self) -> dict[str, dict[str, Any]]:
        told = self.line.run("status", "--json").stdout
        return {row["part"]: row for row in map(json.loads, told.splitlines())}

    def all_run(self) -> bool:
        return self.line.run("status").returncode == 0

    def address(self) -> str:
        return str(self.status()["serve"]["address"])

    def is_ready(self) -> bool:
        with suppress(OSError), urlopen(f"{self.address()}/ready", timeout=30) as answer:  # noqa: S310 - one of ours
            return bool(answer.status == 200)
        return False

    def suggested(self, program: str, *, is_locked: bool) -> list[str]:
        """The commands that `up` prints: for the cluster alone, and for everything."""
        tokens = http_tokens(self.line.home / "up", is_locked=is_locked)
        choices = teams.Choices(**self.upkeep.wanted.choices)
        with closing(TeamsScenario(choices, tokens, profiles=TABLE)) as scenario:
            on_all = "\n".join(try_lines(scenario.suggestions(), program))
        return [*suggested_commands(self.said), *suggested_commands(on_all)]

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
        assert line("down") == f"nothing was running in {line.home}\n"
    finally:
        line.run("down")
        eventually(lambda: left_of(line) == [])


def all_killed(line: CommandLine) -> bool:
    """Kills what runs in the home. To be called again: a supervisor may have started a part after the listing."""
    running = left_of(line)
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(int(process.split()[0]), signal.SIGKILL)
    return running == []


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
    eventually(lambda: all_killed(house.line))
    assert house.line.run("status").returncode == 3

    again = House.start(house.line)

    eventually(again.all_run)
    assert again.more_users_come() >= written
    assert again.line("count", "user-profiles") == "10\n"


def run_all_suggested(house: House, *, is_locked: bool) -> None:
    """All but those that need Spark, play for long or end it: tests/spark runs them, too."""
    # The pipeline writes it.
    row = '{"team": "team-1", "processed": 2, "flagged": 1}'
    house.line("put", "team_stats", "team-1", row)
    eventually(house.is_ready, within_s=120)
    program = os.path.relpath(house.line.program)
    left_out = [f"{program} {w}" for w in ("down", "demo profiles", "sql 'SELECT team, flagged FROM team_stats'")]
    commands = [command for command in house.suggested(program, is_locked=is_locked) if command not in left_out]
    said = {command: run_pasted(house.line, command) for command in commands}
    assert len(said) == 12
    # For whoever had set it for one command alone.
    assert commands[0] == f"export LASTWORD_HOME={house.line.home}"
    (profile,) = [command for command in commands if command.endswith("/users/user-1")]
    # HTTP may take a moment to have a row that was written just now.
    eventually(lambda: json.loads(run_pasted(house.line, profile)) == {"name": "Ada"})
    assert said[f"{program} get team_stats team-1"] == f"{row}\n"


def test_every_command_that_up_suggests_works(house: House) -> None:
    run_all_suggested(house, is_locked=False)


GOES_ON = "cluster default keeps running: it was not started by  lastword up ; stop it with  lastword broker stop\n"


def test_locked_every_suggested_command_works_and_down_leaves_the_cluster_that_ran_before(tmp_path: Path) -> None:
    # The name of the program is in the path of the home, as it is in the usual one.
    line = CommandLine(home=tmp_path / "share" / "lastword")
    try:
        line("broker", "start", "--secure", "--port", "0")
        run_all_suggested(House.start(line, "--secure"), is_locked=True)
        tokens, passwords = line.home / "up" / "tokens", line.home / "clusters" / "default" / "client.properties"
        assert line("status").splitlines()[-1] == (
            f"It is locked: HTTP wants a token of {tokens}, Kafka a password of {passwords}"
        )
        assert line("down") == f"ended users, serve\n{GOES_ON}"
        assert line("count", "user-profiles") == "10\n"
        assert line("down") == f"nothing that  lastword up  started was running\n{GOES_ON}"
    finally:
        line.run("down")
        line.run("broker", "stop")
        eventually(lambda: left_of(line) == [])


@pytest.mark.long
def test_down_leaves_a_cluster_that_was_started_by_hand_after_a_crash_of_what_up_started(alone: CommandLine) -> None:
    alone("up", "--cluster-only", "--detach", "--port", "0")
    (broker,) = LocalCluster.at(alone.home, JARS).status()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    eventually(lambda: alone.run("broker", "status").returncode == 1)
    alone("broker", "start")
    assert alone("down").endswith(GOES_ON)
    assert "stop it with  lastword broker stop" in alone("up", "--cluster-only")
    assert alone("down").endswith(GOES_ON)


def test_the_cluster_of_a_running_up_is_not_stopped_under_it(house: House) -> None:
    refused = house.line.run("broker", "stop")
    assert (refused.returncode, refused.stderr) == (
        2,
        "lastword: lastword up  keeps cluster default running: stop it with  lastword down\n",
    )
    assert house.all_run()
