"""The wheel as its user has it: in an environment and a working directory that have nothing of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import lastword as checkout
from support.installed_package import InstalledCommand, files_of_checkout
from support.processes import started_with
from support.waiting import eventually

pytestmark = pytest.mark.long

# Every module that has been installed, but the one that runs the program.
_IMPORT_ALL = """
import importlib, pathlib, sys
import lastword
package = pathlib.Path(lastword.__file__).parent
for path in sorted(package.rglob("*.py")):
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
    if name != "lastword.__main__":
        importlib.import_module(name)
print(package, *sys.path, sep="\\n")
"""


def test_the_command_knows_its_version_and_its_verbs(base: InstalledCommand) -> None:
    assert base("--version") == f"lastword {checkout.__version__}\n"
    assert "lastword up --detach" in base("--help")
    assert "topic" in base("completion", "bash")


def test_a_row_is_put_and_got_on_a_running_cluster(base: InstalledCommand, topic_name: str) -> None:
    base("topic", "create", topic_name)
    base("put", topic_name, "user-1", '{"name": "Alice"}')
    assert json.loads(base("get", topic_name, "user-1")) == {"name": "Alice"}
    base("delete", topic_name, "user-1")
    assert base("count", topic_name) == "0\n"


def test_http_serves_the_table_and_the_console(base: InstalledCommand, topic_name: str) -> None:
    base("topic", "create", topic_name)
    base("put", topic_name, "user-1", "1")
    server = base.start("serve", "--table", f"users={topic_name}", "--port", "0", stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        line = ""
        while "ready: " not in line:
            line = server.stdout.readline()
            assert line, "the server ended before it was ready"
        address = f"http://{line.split('http://')[-1].strip()}"
        for path, text in (("/users/user-1", b"1"), ("/", b"<!doctype html>"), ("/console/views/table.js", b"import")):
            with urlopen(address + path, timeout=30) as answer:  # noqa: S310 - our own server
                assert text in answer.read().lower()
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0


def test_without_spark_a_verb_says_what_to_install(base: InstalledCommand) -> None:
    done = base.run("sql", "SELECT 1")
    assert done.returncode == 2
    assert "lastword[spark]" in done.stderr


def test_man_finds_the_page_beside_the_program(base: InstalledCommand) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not on the path")
    found = subprocess.run(["man", "-w", "lastword"], env=base.environment(), capture_output=True, text=True)
    assert Path(found.stdout.strip()) == base.folder / "share" / "man" / "man1" / "lastword.1"


def test_every_module_is_imported_with_only_what_the_wheel_asks_for(full: InstalledCommand) -> None:
    command = [str(full.python), "-W", "error", "-c", _IMPORT_ALL]
    done = subprocess.run(command, env=full.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    package, *path = done.stdout.splitlines()
    assert Path(package).is_relative_to(full.folder)
    checkout_folder = str(Path(checkout.__file__).parents[2])
    assert [folder for folder in path if folder.startswith(checkout_folder)] == []


@pytest.fixture
def brought_up(full: InstalledCommand) -> Iterator[str]:
    """What `up` says. Nothing of it runs when the test is over."""
    done = full.run("up", "--detach", "--port", "0", "--http-port", "0", "--rate", "20", timeout_s=400)
    try:
        assert done.returncode == 0, done.stderr
        yield done.stdout
    finally:
        full.run("down")
        eventually(lambda: pids(full) == [])


def pids(command: InstalledCommand) -> list[int]:
    return [int(line.split()[0]) for line in started_with(f"LASTWORD_HOME={command.home}")]


def test_up_runs_everything_without_the_checkout(full: InstalledCommand, brought_up: str) -> None:
    assert "ready: table user-profiles with 10 rows" in brought_up
    rows = {row["part"]: row for row in map(json.loads, full("status", "--json").splitlines())}
    assert {*rows} == {"supervisor", "broker", "users", "pipeline", "serve"}
    assert full("count", "user-profiles") == "10\n"
    # The rules of teams.toml are at work.
    eventually(lambda: full.run("get", "team_stats", "team-1").returncode == 0, within_s=240)
    with urlopen(f"{rows['serve']['address']}/board", timeout=30) as answer:  # noqa: S310 - our own server
        assert len(json.loads(answer.read())["teams"]) == 15
    if sys.platform == "linux":
        assert len(pids(full)) >= 5
        assert files_of_checkout(pids(full)) == set()
    assert full("down").splitlines() == ["ended users, pipeline, serve", "1 broker(s) stopped"]
    eventually(lambda: pids(full) == [])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_look_at_the_checkout_objects_to_a_process_of_it() -> None:
    # This one runs the Python of the checkout.
    assert files_of_checkout([os.getpid()]) != set()
