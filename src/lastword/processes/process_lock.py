"""A process that holds an flock as long as it lives: whether it runs, which one it is, signalling it, its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Protocol


class ProcessFiles(Protocol):
    """The lock that the process holds, and the file with its pid, which is trusted only while the lock is held."""

    @property
    def running(self) -> Path: ...

    @property
    def pid(self) -> Path: ...


def is_running(files: ProcessFiles) -> bool:
    """Whether a live process holds the lock."""
    return is_held(files.running)


def is_held(path: Path) -> bool:
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def running_pid(files: ProcessFiles) -> int | None:
    """Its process id, or None when it does not run."""
    try:
        return int(files.pid.read_text()) if is_running(files) else None
    except (FileNotFoundError, ValueError):
        return None


def signal_process(files: ProcessFiles, number: signal.Signals) -> None:
    pid = running_pid(files)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_until_ended(files: ProcessFiles, timeout_s: float) -> bool:
    give_up_at = time.monotonic() + timeout_s
    while is_running(files):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True


def started_ms(files: ProcessFiles) -> int | None:
    """When it wrote its pid, which is the first thing that it does; None when it never did."""
    try:
        return files.pid.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def end_process(files: ProcessFiles, patience_s: float) -> bool:
    """Ends it in order, and by force after `patience_s`, with the group that it leads; whether it took no force."""
    told: int | None = None
    give_up_at = time.monotonic() + patience_s
    while is_running(files) and time.monotonic() < give_up_at:
        pid = running_pid(files)
        # One that starts just now has no pid yet; and once is enough, for a second signal may mean something else.
        if pid is not None and pid != told:
            told = pid
            signal_process(files, signal.SIGTERM)
        time.sleep(0.02)
    pid = running_pid(files)
    if pid is not None:
        end_family(pid)
        wait_until_ended(files, 5)
        return False
    if told is not None:
        # What it had started, had it not the time to end it itself.
        end_family(told)
    return True


def end_family(leader: int) -> None:
    """Kills the group of a process that leads one, whether or not it still runs itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
