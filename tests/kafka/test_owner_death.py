"""A cluster ends with its owner, however that ends; and `up`, which is such an owner, loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from lastword.kafka.broker.cluster_files import NodeFiles
from support.command_line import CommandLine
from support.processes import alive, running_with
from support.waiting import eventually


@pytest.fixture
def owners(tmp_path: Path) -> CommandLine:
    """The environment of the owners: a home and a folder for temporary clusters of their own."""
    (tmp_path / "temporary").mkdir()
    return CommandLine(home=tmp_path / "home", environ={"TMPDIR": str(tmp_path / "temporary")})


def start_owner(line: CommandLine, name: str | None) -> tuple[subprocess.Popen[str], int]:
    """A Python program that owns a cluster with one row in it, and the pid of its broker."""
    program = textwrap.dedent(f"""
        import lastword
        with lastword.local({name!r}) as cluster:
            cluster.create_table("users").put("user-1", 1)
            print("owning", flush=True)
            input()
    """)
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        env=line.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "owning\n"
    (folder,) = [*line.home.glob("clusters/*"), *Path(line.environ["TMPDIR"]).glob("lastword-*")]
    return owner, int(NodeFiles(folder=folder / "node-1").pid.read_text())


def test_a_killed_owner_of_a_temporary_cluster_leaves_no_broker_and_no_folder(owners: CommandLine) -> None:
    owner, broker = start_owner(owners, None)
    with owner:
        owner.kill()
    eventually(lambda: not alive(broker))
    temporary = Path(owners.environ["TMPDIR"])
    eventually(lambda: not list(temporary.glob("lastword-*")))
    eventually(lambda: running_with(temporary) == [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds a child's life to its parent's")
def test_a_killed_warden_takes_the_broker_along_and_its_owner_still_cleans_up(owners: CommandLine) -> None:
    owner, broker = start_owner(owners, None)
    with owner:
        (warden,) = running_with(f"warden.py {owner.pid}")
        os.kill(int(warden.split()[0]), signal.SIGKILL)
        eventually(lambda: not alive(broker))
        assert owner.poll() is None
        owner.communicate("\n", timeout=60)
    assert owner.returncode == 0
    assert not list(Path(owners.environ["TMPDIR"]).glob("lastword-*"))


def test_a_killed_owner_of_a_named_cluster_leaves_its_data(owners: CommandLine) -> None:
    owner, broker = start_owner(owners, "dev")
    with owner:
        owner.kill()
    eventually(lambda: not alive(broker))

    started = json.loads(owners("broker", "start", "--cluster", "dev", "--json"))

    assert started["recovered"] == [1]
    assert owners("get", "users", "user-1", "--bootstrap-servers", started["bootstrap_servers"]) == "1\n"
    owners("broker", "stop", "--cluster", "dev")
    assert running_with(owners.home) == []


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A home in which `up` chose its port already; nothing of it runs before or after a test."""
    line = CommandLine(home=tmp_path_factory.mktemp("house"))
    line("up", "--cluster-only", "--detach", "--port", "0")
    line("down")
    yield line
    assert running_with(line.home) == []


def start_up(line: CommandLine, *, until: str = "Ctrl-C stops it.\n") -> tuple[subprocess.Popen[str], str]:
    """`lastword up --cluster-only` in the foreground of a process group of its own, and what it said so far."""
    up = line.start("up", "--cluster-only", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    return up, _read_until(up.stdout, until)


def _read_until(output: IO[str] | None, until: str) -> str:
    assert output is not None
    said = ""
    while not said.endswith(until):
        line = output.readline()
        assert line, f"it ended after: {said}"
        said += line
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_ends_in_order_when_asked_to(house: CommandLine, number: signal.Signals) -> None:
    up, said = start_up(house)
    assert "ready: table user-profiles with 10 rows at 127.0.0.1:" in said
    assert "recovered" not in said
    with up:
        # To the whole group, as a terminal does it.
        os.killpg(up.pid, number)
        rest, complaints = up.communicate(timeout=60)
    assert (up.returncode, rest, complaints) == (0, "stopping\n", "")
    assert running_with(house.home) == []
    assert running_with(f"warden.py {up.pid}") == []


def test_up_that_is_interrupted_while_it_starts_leaves_nothing_running(house: CommandLine) -> None:
    up = house.start("up", "--cluster-only", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with up:
        eventually(lambda: len(running_with(house.home)) > 0)
        os.killpg(up.pid, signal.SIGINT)
        said, complaints = up.communicate(timeout=60)
    assert (up.returncode, complaints) == (130, "")
    assert "ready" not in said
    assert running_with(house.home) == []


def test_up_after_everything_was_killed_says_it_recovered_and_has_the_whole_table(house: CommandLine) -> None:
    up, _ = start_up(house)
    house("put", "user-profiles", "user-1", '{"mine": true}')
    with up:
        for process in [*running_with(house.home), *running_with(f"warden.py {up.pid}")]:
            os.kill(int(process.split()[0]), signal.SIGKILL)
        up.kill()
    eventually(lambda: running_with(house.home) == [])

    said = house("up", "--cluster-only", "--detach")

    assert "had not been stopped in order: Kafka recovered its log and reported no damage" in said
    assert "ready: table user-profiles with 10 rows at" in said
    assert house("get", "user-profiles", "user-1") == '{"mine": true}\n'

    # Twice is once, in the foreground too, and `down` ends it.
    assert "ready: table user-profiles with 10 rows at" in house("up", "--cluster-only", "--detach")
    assert "was running already and keeps running" in house("up", "--cluster-only")
    assert house("status").splitlines()[1].split()[:3] == ["broker", "1", "running"]
    assert house("down") == "1 broker(s) stopped\n"
    assert house("down") == f"nothing was running in {house.home}\n"
    assert house.run("status").returncode == 3


def test_up_that_another_command_stopped_ends_well(house: CommandLine) -> None:
    up, _ = start_up(house)
    with up:
        house("down")
        rest, complaints = up.communicate(timeout=60)
    assert (up.returncode, rest) == (0, "stopped by another command\n")
    # The broker ends before the command does that stopped it, and so `up` may have to wait for that.
    waited = "lastword: another command is starting or stopping cluster default: waiting for it\n"
    assert complaints in ("", waited)


def test_up_whose_broker_died_says_so(house: CommandLine) -> None:
    up, _ = start_up(house)
    with up:
        os.kill(json.loads(house("status", "--json"))["pid"], signal.SIGKILL)
        _, complaints = up.communicate(timeout=60)
    assert up.returncode == 1
    assert complaints.startswith("lastword: broker 1 ended unexpectedly: run  lastword up  again to recover, and see ")
    assert running_with(house.home) == []
