"""The processes of this machine, to prove that none was left behind."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state.strip().startswith("Z")


def running_with(text: str | Path) -> list[str]:
    """The command lines of the other processes that contain the text (a home, say)."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,stat=,command="], capture_output=True, text=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()]
    return [
        f"{line[0]} {line[2][:200]}"
        for line in lines
        if len(line) == 3 and str(text) in line[2] and not line[1].startswith("Z") and int(line[0]) != os.getpid()
    ]


def started_with(variable: str) -> list[str]:
    """The processes with `NAME=value` in their environment, each with the test during which it started."""
    # e: with the environment, after the command line
    listed = subprocess.run(["ps", "axeww", "-o", "pid=,stat=,command="], capture_output=True, text=True).stdout
    processes = []
    for line in listed.splitlines():
        pid, state, text = (*line.split(None, 2), "", "")[:3]
        if variable in text.split() and not state.startswith("Z"):
            test = re.search(r"PYTEST_CURRENT_TEST=(.+? \(\w+\))", text)
            processes.append(f"{pid} {text.split()[0]}, started in {test[1] if test else 'no test'}")
    return processes


def children_of(pid: int, text: str) -> list[int]:
    """The children of a process that contain the text in their command line."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,ppid=,stat=,command="], capture_output=True, text=True).stdout
    lines = [line.split(None, 3) for line in listed.splitlines()]
    return [
        int(line[0])
        for line in lines
        if len(line) == 4 and int(line[1]) == pid and text in line[3] and not line[2].startswith("Z")
    ]
