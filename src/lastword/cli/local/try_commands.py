"""The commands that `up` suggests: as printed, they work in the shell from which `up` was run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from shlex import quote

from lastword.demo.people import TABLE

# Each command with its meaning.
Commands = dict[str, str]

ON_THE_CLUSTER: Commands = {
    f"lastword scan {TABLE}": "the table: one row per key",
    f'lastword put {TABLE} user-1 \'{{"name": "Ada"}}\'': "write a row",
    f"lastword get {TABLE} user-1": "its newest value",
    f"lastword records {TABLE}": "the raw log behind the table",
    f"lastword topic compact {TABLE}": "make Kafka compact it now",
    "lastword demo profiles": "the whole story, step by step",
    "lastword down": "stop; the data is kept",
}


def try_lines(commands: Commands, program: str) -> list[str]:
    """A line for each command, with its meaning; `program` is how `lastword` is run from here."""
    # Only at the beginning is it the program: a path may have its name, too.
    words = {
        f"{program} {command.removeprefix('lastword ')}" if command.startswith("lastword ") else command: meaning
        for command, meaning in commands.items()
    }
    width = max(map(len, words))
    return [f"  {command:<{width}}  {meaning}" for command, meaning in words.items()]


def print_try(commands: Commands) -> None:
    home = os.environ.get("LASTWORD_HOME")
    # The variable may be set for this command alone: then the next commands would use the usual home.
    of_home = {f"export LASTWORD_HOME={quote(home)}": "for the commands below, in a new shell too"} if home else {}
    print("\nTry:")
    print("\n".join(try_lines({**of_home, **commands}, _program())), flush=True)


def _program() -> str:
    """The command for this program: its name if the shell finds it, else its path."""
    own = Path(sys.argv[0])
    if own.name == "__main__.py":
        return f"{quote(sys.executable)} -m lastword"
    found = shutil.which("lastword")
    if found is not None and Path(found).resolve() == own.resolve():
        return "lastword"
    return quote(os.path.relpath(own))
