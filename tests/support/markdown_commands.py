"""The console blocks of Markdown pages: `$ ` starts a command, `...` matches any text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of a page, and the output that the page promises."""

    command: str
    promised: str

    def keeps(self, output: str) -> bool:
        """Whether the output is the promised one."""
        return re.fullmatch(_pattern(self.promised), output.rstrip("\n"), re.DOTALL) is not None


def steps(page: Path) -> list[Step]:
    """The commands of all console blocks of a page, in order."""
    commands: list[Step] = []
    for block in _BLOCK.findall(page.read_text()):
        command = ""
        promised: list[str] = []
        for line in [*block.splitlines(), "$ "]:
            if line.startswith("$ "):
                if command:
                    commands.append(Step(command=command, promised="\n".join(promised)))
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
