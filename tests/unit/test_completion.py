"""The scripts of `lastword completion`: bash completes with its script, and all shells can read theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lastword.cli.completion.bash_script import bash_script
from lastword.cli.completion.command_tree import all_commands
from lastword.cli.completion.fish_script import fish_script
from lastword.cli.completion.zsh_script import zsh_script

SCRIPTS: dict[str, Callable[[], str]] = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
# As bash does it at the Tab key: the last word is the one to complete.
_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_lastword
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(tmp_path: Path) -> Callable[..., list[str]]:
    """What bash offers for the last of the words, in a folder with a file and a folder."""
    script = tmp_path / "script.bash"
    script.write_text(bash_script())
    here = tmp_path / "here"
    (here / "data folder").mkdir(parents=True)
    (here / "dump.jsonl").touch()

    def press_tab(*words: str) -> list[str]:
        command = ["bash", "--norc", "-c", _TAB, "bash", str(script), "lastword", *words]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True)
        assert done.stderr == ""
        return sorted(done.stdout.split("\n")[:-1]) if done.stdout != "\n" else []

    return press_tab


def test_the_tree_has_what_argparse_keeps_in_private_members() -> None:
    commands = {" ".join(command.words): command for command in all_commands()}
    assert [action.name for action in commands["broker user"].actions] == ["add", "list", "remove"]
    assert [place.value for place in commands["put"].places] == ["TOPIC", "KEY", "VALUE"]
    serve = {option.names[-1]: option for option in commands["serve"].options}
    assert serve["--table"].may_repeat
    assert not serve["--port"].may_repeat


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["comp"], ["compare", "completion"]),
        (["--v"], ["--version"]),
        (["broker", "user", ""], ["add", "list", "remove"]),
        (["topic", "create", "--p"], ["--partitions"]),
        (["run", "--from", ""], ["earliest", "latest"]),
        (["run", "--from", "=", "e"], ["earliest"]),
        (["get", "--key-codec", "b"], ["bytes"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["load", "t", "d"], ["data folder", "dump.jsonl"]),
        # The value of an option does not count as an argument.
        (["load", "--cluster", "x", "t", "du"], ["dump.jsonl"]),
        (["sql", "--cluster", "x", "--fo"], ["--format"]),
        (["serve", "--data", "d"], ["data folder"]),
        (["load", "d"], []),
        (["up", "--port", ""], []),
        (["no-such-verb", ""], []),
    ],
    ids=" ".join,
)
def test_bash_offers_what_fits_at_this_place(
    completed: Callable[..., list[str]], words: list[str], offered: list[str]
) -> None:
    assert completed(*words) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("comp", ["compare", "completion"]),
        ("broker user ", ["add", "list", "remove"]),
        ("run --from ", ["earliest", "latest"]),
        ("load --cluster x t du", ["dump.jsonl"]),
        ("serve --data d", ["data folder/"]),
        ("sql --cluster x --fo", ["--format"]),
        ("up --port ", []),
    ],
)
def test_fish_offers_what_fits_at_this_place(tmp_path: Path, words: str, offered: list[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not on the path: install it to check its script")
    script = tmp_path / "script.fish"
    script.write_text(fish_script())
    folder = tmp_path / "folder"
    (folder / "data folder").mkdir(parents=True)
    (folder / "dump.jsonl").touch()
    command = ["fish", "--no-config", "-c", 'source $argv[1]; complete -C "lastword $argv[2]"', str(script), words]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert sorted(line.partition("\t")[0].replace("\\", "") for line in done.stdout.splitlines()) == offered


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_shell_can_read_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on the path: install it to check its script")
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell]())
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_has_every_command_and_every_option(shell: str) -> None:
    script = SCRIPTS[shell]()
    commands = all_commands()
    assert len(commands) > 30
    for command in commands:
        assert command.name in script
        for name in (name for option in command.options for name in option.names):
            assert (f"-l {name[2:]} " if shell == "fish" and name.startswith("--") else name.lstrip("-")) in script
