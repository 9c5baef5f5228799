"""A reader who types docs/tutorial.md, from top to bottom, sees what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lastword.processes.ports import PortPicker
from support.command_line import CommandLine
from support.markdown_commands import Step, files, steps
from support.terminal import Terminal
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
BROKER_PORT, HTTP_PORT = "19092", "18090"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The tutorial on free ports."""
    with PortPicker() as ports:
        text = (ROOT / "docs" / "tutorial.md").read_text()
        for port in (BROKER_PORT, HTTP_PORT):
            text = text.replace(port, str(ports.free()))
    copy = tmp_path / "tutorial.md"
    copy.write_text(text)
    return copy


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[CommandLine]:
    """Somebody whose home folder is empty."""
    line = CommandLine(home=tmp_path / "lastword-tutorial", environ={"HOME": str(tmp_path)})
    yield line
    line.run("broker", "stop")


def test_the_tutorial_goes_as_it_says(page: Path, reader: CommandLine, tmp_path: Path) -> None:
    environ = {name: value for name, value in reader.environment().items() if name != "LASTWORD_HOME"}
    terminals: dict[str, Terminal] = {}
    pid = ""
    with ExitStack() as stack:
        for step in steps(page):
            if step.terminal not in terminals:
                output = tmp_path / f"terminal-{len(terminals)}.txt"
                terminals[step.terminal] = stack.enter_context(Terminal(ROOT, environ, output))
            if step.command.startswith("python follow.py"):
                (reader.home / "follow.py").write_text(files(page)["follow.py"])
            printed = take(step, terminals[step.terminal], pid)
            shown = re.search(r"running +\S+ +(\d+) ", printed)
            pid = shown[1] if shown else pid
    assert not reader.home.exists()


def take(step: Step, terminal: Terminal, pid: str) -> str:
    """The output of a step; the reader types a process id where the page says PID."""
    code = terminal.enter(re.sub(r"\bPID\b", pid, step.command)) if step.command else 0
    try:
        eventually(lambda: step.keeps(terminal.new_output))
    except AssertionError:
        pytest.fail(f"$ {step.command}\n--- promised\n{step.promised}\n--- got\n{terminal.new_output}")
    printed = terminal.new_output
    assert (code != 0) == step.fails, f"$ {step.command}\ngave {code}: {printed}"
    terminal.read()
    return printed
