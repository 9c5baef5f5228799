"""Keeps brokers from outliving their owner: runs them as its children and kills them when the owner ends.

Run as a separate script (`python -I -S warden.py OWNER-PID REMOVE`), so it imports only the standard library. The owner
asks for brokers with a line of JSON on standard input and gets the line `started`, or the error. When the owner dies,
in any way, the kernel closes its end of the pipe and gives the warden another parent; either event ends the brokers.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

# The process that holds the lock writes its own pid before it becomes the broker: so a broker can be found and stopped
# even if its starter is killed at any instant.
_WRITE_PID_AND_EXEC = 'echo $$ >"$0" && exec "$@"'

# This shell ends at once, so the broker has no parent here: no process must wait for it, and it outlives its starter.
DETACH = '"$@" &'


def spawn(
    command: list[str],
    *,
    lock: str,
    pid: str,
    output: str,
    detached: bool = False,
    preexec: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """A broker's process that holds `lock` as long as it lives; BlockingIOError when another process holds it.

    An flock belongs to the open file, which the child inherits: it ends with the process and can't be left behind,
    so "is it alive?" needs no pid, and a pid is trusted only while the lock is held.
    """
    broker = ["/bin/sh", "-c", _WRITE_PID_AND_EXEC, pid, *command]
    with Path(lock).open("a") as held, Path(output).open("ab") as output_file:
        take(held)
        return subprocess.Popen(
            ["/bin/sh", "-c", DETACH, "detach", *broker] if detached else broker,
            # A crashing JVM writes its files here, beside the broker's log; and the broker uses no folder of the user.
            cwd=Path(lock).parent,
            # Without a UTF-8 locale Java finds no file below a folder such as /home/josé.
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=output_file,
            pass_fds=[held.fileno()],
            start_new_session=True,
            # Only the owner may read its files, as its folder.
            umask=0o077,
            preexec_fn=preexec,  # noqa: PLW1509 - the warden has one thread, and only it passes a function
        )


def take(held: IO[str], patience_s: float = 2.0) -> None:
    """Takes the lock of an open file; BlockingIOError when another process holds it."""
    # A process that asks "is it alive?" holds the lock for an instant; only a broker holds it for longer.
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.005)


def _requests(owner: int, brokers: list[subprocess.Popen[bytes]]) -> Iterator[bytes]:
    """The lines of the owner, until it closes the pipe or is gone."""
    rest = b""
    # Not by the pipe alone: a process that the owner forked holds our input open as long as it lives.
    while os.getppid() == owner:
        for broker in brokers:
            broker.poll()  # so that a broker that ended by itself is no zombie
        if select.select([0], [], [], 0.2)[0]:
            chunk = os.read(0, 65_536)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines


def _die_with(warden: int) -> Callable[[], None]:
    """Binds the life of a child to the warden's, on Linux: then the brokers end even with a killed warden."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    libc = ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != warden:
            os._exit(1)  # the warden died before we were bound to it

    return bind


def _start(requested: list[dict[str, Any]], brokers: list[subprocess.Popen[bytes]]) -> str:
    bind = _die_with(os.getpid())
    try:
        for broker in requested:
            brokers.append(spawn(**broker, preexec=bind))  # noqa: PERF401 - keeps the brokers before a failure
    except (OSError, subprocess.SubprocessError) as failure:
        return f"{type(failure).__name__}: {failure}"
    return "started"


def main() -> None:
    owner, remove = int(sys.argv[1]), sys.argv[2]
    # Ctrl-C reaches the whole foreground group; ending is the owner's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    brokers: list[subprocess.Popen[bytes]] = []
    try:
        for line in _requests(owner, brokers):
            print(_start(json.loads(line), brokers), flush=True)
    finally:
        for broker in brokers:
            broker.kill()
        for broker in brokers:
            broker.wait()
        if remove:
            shutil.rmtree(remove, ignore_errors=True)


if __name__ == "__main__":
    main()
