"""The command `lastword` inside the tests' own process: a verb on Spark then takes the session that runs there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lastword.cli import main


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, kw_only=True)
class InProcess:
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> CommandResult:
        self.capsys.readouterr()
        code = main(list(words))
        said = self.capsys.readouterr()
        return CommandResult(code=code, stdout=said.out, stderr=said.err)

    def __call__(self, *words: str) -> str:
        """The output of a command that must succeed and has nothing to say beside it."""
        done = self.run(*words)
        assert (done.code, done.stderr) == (0, ""), done
        return done.stdout
