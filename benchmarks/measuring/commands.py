"""The commands that a benchmark runs, and the environment they run in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The folder that has `benchmarks`. A child process finds the package there, whatever its working directory is.
_ROOT = Path(__file__).parents[2]
# Settings that would make the two sides differ: those of lastword, and one that leaves no compiled files.
_DROPPED = ("LASTWORD_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


def lastword(*words: str) -> list[str]:
    """The command line as a user runs it."""
    return [str(Path(sys.executable).parent / "lastword"), *words]


def python(module: str, *words: str) -> list[str]:
    """A module of `benchmarks` as a process."""
    return [sys.executable, "-m", f"benchmarks.{module}", *words]


def alternative(module: str, *words: str) -> list[str]:
    return python("alternatives." + module, *words)


def name_of(command: list[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:3]])


def environment(home: Path) -> dict[str, str]:
    """The environment of every process that a benchmark starts."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    paths = [str(_ROOT), *filter(None, [inherited.get("PYTHONPATH")])]
    return {**inherited, "LASTWORD_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths)}
