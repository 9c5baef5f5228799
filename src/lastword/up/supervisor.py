"""The supervisor: a process that keeps the parts running, with a stand-by process that takes over if it is killed.

The process that holds the lock supervises; the stand-by waits for the lock. Neither stops a part: a command such as
`lastword down` ends the supervisor and then stops the parts (`control`). The supervisor is run as
`python -m lastword.up.supervisor FOLDER`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from lastword.processes.process_lock import is_held
from lastword.up.desired_state import OWNER_LOCK, SUPERVISOR, files_of, load_desired_state
from lastword.up.part_supervisor import ClusterKeeper, PartKeeper

_LOOK_EVERY_S = 0.2
_AFTER_FAILURE_S = 1.0
# The name of the cluster among the parts.
CLUSTER = "cluster"


class Supervisor:
    """Keeps the parts running as long as they are wanted; then `run` returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        wanted = load_desired_state(folder)
        self._parts = [PartKeeper(part, files_of(folder, part.name)) for part in wanted.parts]
        self._keepers: list[PartKeeper | ClusterKeeper] = [*self._parts]
        self._cluster: ClusterKeeper | None = None
        if wanted.cluster is not None:
            self._cluster = ClusterKeeper(wanted.start_cluster, Path(wanted.cluster), files_of(folder, CLUSTER))
            self._keepers.insert(0, self._cluster)
        self._stand_by: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        try:
            while (wanted := load_desired_state(self._folder)).is_wanted:
                if wanted.is_owned and not is_held(self._folder / OWNER_LOCK):
                    self._end_everything()
                self._keep_stand_by()
                self._look()
                time.sleep(_LOOK_EVERY_S)
            if not self._folder.exists():
                # No command could find the parts any more.
                for part in self._parts:
                    part.kill()
        finally:
            self._settle()

    def _settle(self) -> None:
        """Leaves no process behind that could start a part later."""
        self._dismiss_stand_by()
        if self._cluster is not None:
            self._cluster.settle()

    def _look(self) -> None:
        for keeper in self._keepers:
            try:
                keeper.look()
            except OSError as failure:
                # For example a full disk: parts that run must keep running.
                print(f"lastword: {failure}", file=sys.stderr, flush=True)
                time.sleep(_AFTER_FAILURE_S)

    def _end_everything(self) -> None:
        """The `up` in the foreground has ended without stopping its parts."""
        self._settle()
        # This releases the lock of the supervisor.
        os.execv(sys.executable, [sys.executable, "-m", "lastword", "down"])  # noqa: S606

    def _keep_stand_by(self) -> None:
        if self._stand_by is None or self._stand_by.poll() is not None:
            with files_of(self._folder, SUPERVISOR).log.open("ab") as log:
                self._stand_by = subprocess.Popen(
                    supervisor_command(self._folder),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def _dismiss_stand_by(self) -> None:
        if self._stand_by is not None:
            self._stand_by.kill()
            self._stand_by.wait()


def supervisor_command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "lastword.up.supervisor", str(folder)]


def main(folder: Path) -> None:
    files = files_of(folder, SUPERVISOR)
    # Never closed: a process that gets the lock knows that this process is gone.
    lock = os.open(files.running, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if load_desired_state(folder).is_wanted:
        files.pid.write_text(str(os.getpid()))
        Supervisor(folder).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
