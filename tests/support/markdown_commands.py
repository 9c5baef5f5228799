"""The blocks of Markdown pages that a reader types: `$ ` starts a command, `...` in its output matches any text.

A block's title names the terminal of its commands, or the file that the reader saves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r'^```console(?: title="([^"\n]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
_FILE = re.compile(r'^```\w+ title="([^"\n]+\.\w+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of a page, and the output that the page promises; without a command, output that comes by itself."""

    command: str
    promised: str
    terminal: str = ""

    def keeps(self, output: str) -> bool:
        """Whether the output is the promised one."""
        return re.fullmatch(_pattern(self.promised), output.rstrip("\n"), re.DOTALL) is not None

    @property
    def fails(self) -> bool:
        """Whether the page shows an error of lastword as the whole output."""
        return re.match(r"lastword: (?!warning: )", self.promised) is not None


def steps(page: Path) -> list[Step]:
    """The commands of all console blocks of a page, in order."""
    return [step for terminal, block in _BLOCK.findall(page.read_text()) for step in _steps_of(terminal, block)]


def files(page: Path) -> dict[str, str]:
    """The files that the page asks its reader to save."""
    return dict(_FILE.findall(page.read_text()))


def _steps_of(terminal: str, block: str) -> list[Step]:
    commands: list[Step] = []
    command = ""
    promised: list[str] = []
    for line in [*block.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command or promised:
                commands.append(Step(command=command, promised="\n".join(promised), terminal=terminal))
            command, promised = line[2:], []
        else:
            promised.append(line)
    return commands


def _pattern(promised: str) -> str:
    lines = []
    for line in promised.splitlines():
        if line == "...":
            lines.append(r"(?:[^\n]*\n)*?[^\n]*")
        else:
            # The width of a column depends on its contents.
            words = r"\s+".join(re.escape(word) for word in line.split())
            lines.append(r"[^\n\S]*" + words.replace(re.escape("..."), r"[^\n]*?") + r"[^\n\S]*")
    return r"\n".join(lines)
