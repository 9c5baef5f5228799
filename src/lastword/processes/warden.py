"""Keeps brokers from outliving their owner: runs them as its children and kills them when the owner ends.

Run as a script of its own (`python -I -S warden.py OWNER-PID REMOVE`), so it imports nothing but the standard library.
The owner asks for brokers with a line of JSON on standard input and hears `started`, or what was wrong. However the
owner dies, the kernel closes its end of the pipe and gives the warden another parent; either one ends the brokers.
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

# The process that holds the lock writes its own pid before it becomes the broker: a broker whose starter is killed at
# any instant is still one that can be found and stopped.
_TELL_PID_AND_BECOME = 'echo $$ >"$0" && exec "$@"'


# It ends at once, so that the broker is nobody's child: no one has to wait for it, and it outlives everyone.
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
    """A broker's process that holds `lock` as long as it lives; BlockingIOError when another one does.

    An flock belongs to the open file, which the child inherits: it ends with the process and can't be left behind,
    so "is it alive?" needs no pid, and a pid is trusted only while the lock is held.
    """
    become = ["/bin/sh", "-c", _TELL_PID_AND_BECOME, pid, *command]
    with Path(lock).open("a") as held, Path(output).open("ab") as said:
        take(held)
        return subprocess.Popen(
            ["/bin/sh", "-c", DETACH, "detach", *become] if detached else become,
            # What a crashing JVM leaves belongs beside the broker's log, and no folder of the user's is kept busy.
            cwd=Path(lock).parent,
            # Without a UTF-8 locale Java finds no file below a folder such as /home/josé.
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=[held.fileno()],
            start_new_session=True,
            # What it writes is for its owner alone, as its folder is.
            umask=0o077,
            preexec_fn=preexec,  # noqa: PLW1509 - the warden has one thread, and only it passes a function
        )


def take(held: IO[str], patience_s: float = 2.0) -> None:
    """The lock of an open file; BlockingIOError when another holds it."""
    # Whoever asks "is it alive?" holds the lock for an instant; only a broker holds it for longer.
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.005)


def _requests(owner: int, brokers: list[subprocess.Popen[bytes]]) -> Iterator[bytes]:
    """The owner's lines, until it lets go or is gone."""
    heard = b""
    # Not by the pipe alone: a process that the owner forked holds our input open as long as it lives.
    while os.getppid() == owner:
        for broker in brokers:
            broker.poll()  # so that one that ended by itself is no zombie
        if select.select([0], [], [], 0.2)[0]:
            chunk = os.read(0, 65_536)
            if not chunk:
                return
            *whole, heard = (heard + chunk).split(b"\n")
            yield from whole


def _die_with(warden: int) -> Callable[[], None]:
    """Linux can bind a child's life to its parent's: then even a killed warden takes the brokers along."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    libc = ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != warden:
            os._exit(1)  # it died before we were bound to it

    return bind


def _start(asked: list[dict[str, Any]], brokers: list[subprocess.Popen[bytes]]) -> str:
    bind = _die_with(os.getpid())
    try:
        for broker in asked:
            brokers.append(spawn(**broker, preexec=bind))  # noqa: PERF401 - those before a failure count
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
