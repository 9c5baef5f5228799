"""Keeps brokers from outliving their owner: runs them as its children and kills them when its standard input ends.

Run as a script of its own (`python -I -S warden.py JSON`), so it imports nothing but the standard library. The owner
holds the other end of the pipe; however the owner dies, the kernel closes it.
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
from pathlib import Path
from typing import Any


def spawn(command: list[str], *, lock: str, pid: str, output: str, preexec: Any = None) -> subprocess.Popen[bytes]:
    """A broker's process that holds `lock` as long as it lives; BlockingIOError when another one does.

    An flock belongs to the open file, which the child inherits: it ends with the process and can't be left behind,
    so "is it alive?" needs no pid, and a pid is trusted only while the lock is held.
    """
    with Path(lock).open("a") as held, Path(output).open("ab") as said:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        broker = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=[held.fileno()],
            start_new_session=True,
            preexec_fn=preexec,  # noqa: PLW1509 - the warden has one thread, and only it passes a function
        )
        Path(pid).write_text(str(broker.pid))
    return broker


def watch(brokers: list[subprocess.Popen[bytes]], remove: str | None) -> None:
    """Returns when every broker has ended by itself; kills them all when the owner is gone."""
    while any(broker.poll() is None for broker in brokers):
        if select.select([0], [], [], 0.2)[0] and not os.read(0, 1):
            for broker in brokers:
                broker.kill()
            for broker in brokers:
                broker.wait()
            if remove:
                shutil.rmtree(remove, ignore_errors=True)
            return


def _die_with_warden() -> None:
    # Linux can bind a child's life to its parent's: then even a killed warden takes the brokers along.
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main() -> None:
    told = json.loads(sys.argv[1])
    # Ctrl-C reaches the whole foreground group; ending is the owner's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    brokers = [spawn(**broker, preexec=_die_with_warden) for broker in told["brokers"]]
    print("started", flush=True)
    watch(brokers, told["remove"])


if __name__ == "__main__":
    main()
