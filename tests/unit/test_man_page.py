"""The man page, made from the parsers: it has every command and option, and man's own programs format it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import lastword
from lastword.cli.completion.command_tree import Command, all_commands
from support.system_packages import program

PAGE = Path(__file__).parents[2] / "docs" / "lastword.1"
GROFF = ("groff", "-man", "-Tutf8")


def complaints(page: Path) -> str:
    """What groff warns of."""
    command = [*GROFF, "-ww", "-z", str(page)]
    program("groff", "groff-base")
    return subprocess.run(command, capture_output=True, text=True).stderr


@pytest.fixture(scope="module")
def shown() -> str:
    """The page as a reader of `man` sees it, without bold type."""
    command = [*GROFF, "-P-cbou", "-rLL=1000n", str(PAGE)]
    program("groff", "groff-base")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_groff_formats_the_page_without_a_warning() -> None:
    assert complaints(PAGE) == ""


def test_groff_objects_to_a_page_with_a_mistake(tmp_path: Path) -> None:
    broken = tmp_path / "lastword.1"
    broken.write_text(PAGE.read_text().replace(".SH VERBS", ".SHH VERBS"))
    assert "SHH" in complaints(broken)


def test_mandoc_finds_nothing_to_warn_of() -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not on the path: install it to check the page for the BSDs and macOS")
    done = subprocess.run([mandoc, "-T", "lint", "-W", "warning", str(PAGE)], capture_output=True, text=True)
    # A date would make the page stale each day.
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: " ".join(command.words))
def test_a_command_is_on_the_page_with_its_options_and_its_example(command: Command, shown: str) -> None:
    title = rf"^   lastword {re.escape(' '.join(command.words))}$"
    found = re.search(rf"{title}(.*?)(?=^ ? ? ?\S)", shown, re.MULTILINE | re.DOTALL)
    assert found is not None
    section = found[1]
    for argument in (*command.options, *command.places):
        if "--help" not in argument.names:
            assert ", ".join(argument.names) in section
            assert argument.help in section
    example = command.example.removeprefix("example:\n").partition("\n\n")[0]
    # As it was typed: a hyphen or a quote of typography can't be pasted.
    assert [line for line in example.splitlines() if line.strip() not in section] == []


def test_the_page_names_the_version_and_the_environment(shown: str) -> None:
    assert f"lastword {lastword.__version__}" in shown
    assert re.search(r"^ *LASTWORD_HOME$", shown, re.MULTILINE)
