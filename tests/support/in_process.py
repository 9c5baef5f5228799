"""The command `lastword` in the process of the tests: a verb on Spark then uses the session of the tests."""

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
        printed = self.capsys.readouterr()
        return CommandResult(code=code, stdout=printed.out, stderr=printed.err)

    def __call__(self, *words: str) -> str:
        """The output of a command that must succeed and print nothing to standard error."""
        done = self.run(*words)
        assert (done.code, done.stderr) == (0, ""), done
        return done.stdout
