"""The command `python -m benchmarks` as a developer runs it."""

from __future__ import annotations

import sys
from pathlib import Path

from support.command_line import CommandLine

_ROOT = Path(__file__).parents[2]


class BenchmarkCommand(CommandLine):
    """Its home and its environment are those of a `CommandLine`."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONPATH": str(_ROOT)}

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "benchmarks", *words]
