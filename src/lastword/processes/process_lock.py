"""A process that holds a lock (flock) as long as it lives: whether it runs, its pid, signals, ending it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ProcessFiles:
    """The lock that the process holds, and the file with its pid, which is trusted only while the lock is held."""

    folder: Path

    @property
    def running(self) -> Path:
        return self.folder / "running.lock"

    @property
    def pid(self) -> Path:
        return self.folder / "pid"


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
    """The process id; None when the process does not run."""
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
    """When the process wrote its pid, which it does first; None when it never did."""
    try:
        return files.pid.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def end_process(files: ProcessFiles, patience_s: float) -> bool:
    """Ends the process and its group: in order, and by force after `patience_s`. True if no force was needed."""
    signalled: int | None = None
    give_up_at = time.monotonic() + patience_s
    while is_running(files) and time.monotonic() < give_up_at:
        pid = running_pid(files)
        # A process that has just started has no pid yet. One signal only: a second may mean something else.
        if pid is not None and pid != signalled:
            signalled = pid
            signal_process(files, signal.SIGTERM)
        time.sleep(0.02)
    pid = running_pid(files)
    if pid is not None:
        end_group(pid)
        wait_until_ended(files, 5)
        return False
    if signalled is not None:
        # The children of the process, if it had no time to end them itself.
        end_group(signalled)
    return True


def end_group(leader: int) -> None:
    """Kills the process group of a leader, whether or not the leader still runs."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
