"""A terminal as a reader has it: a shell that keeps its folder, its variables and its background programs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from support.waiting import eventually

# The shell's own report of a program that was killed; it comes at no certain time.
_REAPED = re.compile(r"^bash: line \d+: +\d+ (?:Killed|Terminated) .*\n", re.MULTILINE)
_DONE = re.compile(r"\n<the command gave (\d+)>\n")


class Terminal:
    """A shell whose output goes to a file. Its background programs end with it."""

    def __init__(self, folder: Path, environ: Mapping[str, str], output: Path) -> None:
        self._output = output
        self._seen = 0
        with output.open("w") as written:
            self._shell = subprocess.Popen(
                ["bash"],
                cwd=folder,
                env={**environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def enter(self, command: str) -> int:
        """The exit code of the command, when it has ended or runs in the background."""
        assert self._shell.stdin is not None
        before = len(_DONE.findall(self._text()))
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n<the command gave %d>\\n' $?\n")
        self._shell.stdin.flush()
        eventually(lambda: len(_DONE.findall(self._text())) > before, within_s=300)
        return int(_DONE.findall(self._text())[-1])

    @property
    def new_output(self) -> str:
        """What was printed since `read`."""
        return _REAPED.sub("", _DONE.sub("", self._text()[self._seen :]))

    def read(self) -> None:
        """Marks all output as read."""
        self._seen = len(self._text())

    def _text(self) -> str:
        return self._output.read_text()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
