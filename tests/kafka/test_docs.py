"""What README.md and docs/ show is what a reader gets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.markdown_commands import Step, files, steps
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
# What `serve` takes unless it is told.
USUAL = "127.0.0.1:8090"
# The tutorial starts its own cluster: test_tutorial.py runs it.
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if steps(page) and page.name != "tutorial.md"
]


@pytest.fixture
def shell(alone: CommandLine, tmp_path: Path) -> Iterator[CommandLine]:
    """A machine as it is after `make up`, except for the port, and for what runs on the cluster."""
    alone("up", "--cluster-only", "--detach", "--port", "0")
    yield alone
    alone("down")


@pytest.fixture
def serving(shell: CommandLine) -> Iterator[Callable[[Step], str]]:
    """Runs `lastword serve` of a page beside what follows it, on a free port, and gives its address."""
    with ExitStack() as stack:

        def run(step: Step) -> str:
            words = step.command.split()[1:]
            process = stack.enter_context(shell.start(*words, "--port", "0", stdout=subprocess.PIPE))
            stack.callback(process.terminate)
            assert process.stdout is not None
            said = ""
            while "ready: " not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            address = said.split("http://")[-1].strip()
            assert step.keeps(said.replace(address, USUAL)), said
            return address

        yield run


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_gives_what_the_page_says(
    page: Path, shell: CommandLine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = {**shell.environment(), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    address = USUAL
    if page.name == "README.md":
        # As after `make up`, which serves it.
        address = request.getfixturevalue("serving")(
            Step(command="lastword serve --table users=user-profiles", promised="...")
        )
    for step in steps(page):
        if step.command.startswith("lastword serve"):
            address = request.getfixturevalue("serving")(step)
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", step.command.replace(USUAL, address)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"$ {step.command}\n{done.stdout}{done.stderr}"
        assert step.keeps(done.stdout), f"$ {step.command}\n--- promised\n{step.promised}\n--- got\n{done.stdout}"


def test_the_comparison_objects_to_another_output() -> None:
    step = Step(command="lastword count t", promised="9")
    assert step.keeps("9\n")
    assert not step.keeps("10\n")
    assert not Step(command="", promised="... records").keeps("15 rows")
    assert not Step(command="", promised="...\n15 records").keeps("a\nb\n16 records")


def test_a_title_names_a_terminal_or_a_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```console title="Second"\n$ serve &\nready\n```\n```console title="Second"\na change\n```\n'
        '```python title="follow.py"\nprint(1)\n```\n```console\n$ lastword get t k\nlastword: no key\n```\n'
    )
    served, changed, asked = steps(page)
    assert served == Step(command="serve &", promised="ready", terminal="Second")
    assert changed == Step(command="", promised="a change", terminal="Second")
    assert (asked.terminal, asked.fails, served.fails) == ("", True, False)
    assert not Step(command="", promised="lastword: warning: too short\ndone").fails
    assert files(page) == {"follow.py": "print(1)\n"}


def printed_by(page: str, alone: CommandLine, folder: Path) -> list[str]:
    """What the Python of a page prints."""
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    (folder / "page.py").write_text("\n".join(code))
    done = subprocess.run(
        [sys.executable, str(folder / "page.py")],
        env=alone.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_python_page_runs(alone: CommandLine, tmp_path: Path) -> None:
    printed = printed_by("python.md", alone, tmp_path)
    assert (printed[0], printed[-1]) == ("{'name': 'Alice', 'age': 26}", "user-1 26")


def test_the_page_of_the_replica_runs_and_leaves_nothing_in_the_home(alone: CommandLine, tmp_path: Path) -> None:
    printed = printed_by("replica.md", alone, tmp_path)
    assert printed[0] == "{'name': 'Alice', 'age': 25} 1 False"
    assert sorted(printed[1:3]) == ["user-1 deleted", "user-2 {'name': 'Bob'}"]
    assert printed[3].startswith("user-2 ")
    # A temporary cluster takes its replicas along.
    assert not (alone.home / "replicas").exists()


@pytest.mark.open
def test_the_smallest_example_prints_the_last_update(lastword: CommandLine) -> None:
    bootstrap = lastword.environ["LASTWORD_BOOTSTRAP_SERVERS"]

    def run(name: str) -> str:
        command = [sys.executable, str(ROOT / "examples" / name), bootstrap]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert run("producer.py") == "Messages sent.\n"
    lastword("topic", "compact", "compacted-topic")
    raw = lastword("records", "compacted-topic", "--value-codec", "string", "--json").splitlines()
    assert len(raw) == 1
    assert run("consumer.py") == "Key: user1, Value: update-4\n"
    lastword("topic", "delete", "compacted-topic")


@pytest.mark.open
def test_the_following_example_misses_nothing_while_it_is_away(lastword: CommandLine, tmp_path: Path) -> None:
    servers, topic = lastword.environ["LASTWORD_BOOTSTRAP_SERVERS"], f"follow-{uuid.uuid4().hex[:8]}"
    lastword("topic", "create", topic, "--partitions", "1")

    def following() -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "examples" / "follow.py"), servers, topic, str(tmp_path / "position")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def says(process: subprocess.Popen[str], *lines: str) -> None:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in lines] == [f"{line}\n" for line in lines]

    first = following()
    says(first, "ready with 0 rows")
    lastword("put", topic, "a", "1")
    says(first, "a = 1")
    # The position is saved after the line is printed.
    eventually((tmp_path / "position").exists)
    first.kill()
    first.communicate()
    lastword("put", topic, "a", "2")
    lastword("delete", topic, "a")
    second = following()
    says(second, "ready with 0 rows", "a = 2", "a = None")
    second.kill()
    second.communicate()
    lastword("topic", "delete", topic)
