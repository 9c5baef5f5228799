"""The command `lastword` as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lastword.core.home import default_home, default_jars

JARS = default_jars(default_home())


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """The command `lastword` as a user runs it: a process with a given home."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def start(self, *words: str, **pipes: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command(words), env=self.environment(), text=True, **pipes)

    def run(self, *words: str, given: str | None = None, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(words), env=self.environment(), input=given, capture_output=True, text=True, timeout=timeout_s
        )

    def __call__(self, *words: str, given: str | None = None) -> str:
        """The output of a command that must succeed."""
        done = self.run(*words, given=given)
        assert done.returncode == 0, f"lastword {' '.join(words)} gave {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LASTWORD_")}
        return {**inherited, "LASTWORD_HOME": str(self.home), "LASTWORD_JARS": str(JARS), **self.environ}

    @property
    def program(self) -> Path:
        return Path(sys.executable).parent / "lastword"

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [str(self.program), *words]
