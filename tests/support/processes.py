"""What runs on this machine, to prove that nothing was left behind."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state.strip().startswith("Z")


def running_with(text: str | Path) -> list[str]:
    """The command lines of the processes, but for this one, that have the text (a home, say) in them."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,stat=,command="], capture_output=True, text=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()]
    return [
        f"{line[0]} {line[2][:200]}"
        for line in lines
        if len(line) == 3 and str(text) in line[2] and not line[1].startswith("Z") and int(line[0]) != os.getpid()
    ]


def started_with(variable: str) -> list[str]:
    """The processes that have it (`NAME=value`) in their environment, each with the test during which it started."""
    # e: with the environment, after the command line
    listed = subprocess.run(["ps", "axeww", "-o", "pid=,stat=,command="], capture_output=True, text=True).stdout
    found = []
    for line in listed.splitlines():
        pid, state, shown = (*line.split(None, 2), "", "")[:3]
        if variable in shown.split() and not state.startswith("Z"):
            test = re.search(r"PYTEST_CURRENT_TEST=(.+? \(\w+\))", shown)
            found.append(f"{pid} {shown.split()[0]}, started in {test[1] if test else 'no test'}")
    return found


def children_of(pid: int, text: str) -> list[int]:
    """The processes that this one started and that have the text in their command line."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,ppid=,stat=,command="], capture_output=True, text=True).stdout
    lines = [line.split(None, 3) for line in listed.splitlines()]
    return [
        int(line[0])
        for line in lines
        if len(line) == 4 and int(line[1]) == pid and text in line[3] and not line[2].startswith("Z")
    ]
