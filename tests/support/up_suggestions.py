"""The commands that `up` prints under `Try:`, run as a user would: pasted into a shell."""

from __future__ import annotations

import re
import subprocess
from urllib.request import urlopen

from support.command_line import CommandLine


def suggested_commands(lines: str) -> list[str]:
    """The commands of lines like `  COMMAND   MEANING`; in the output of `up`, those after `Try:`."""
    _, _, block = lines.rpartition("Try:\n")
    return [re.split(r"  +", line.strip())[0] for line in (block or lines).splitlines() if line.startswith("  ")]


def run_pasted(line: CommandLine, command: str) -> str:
    """The output of the command, which must succeed without errors. An address is opened as by a browser."""
    if command.startswith("http://"):
        with urlopen(command, timeout=30) as page:  # noqa: S310 - one of ours
            return str(page.read().decode())
    done = subprocess.run(["/bin/sh", "-c", command], env=line.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), f"{command} gave {done.returncode}: {done.stdout}{done.stderr}"
    assert '"error":' not in done.stdout
    return done.stdout
