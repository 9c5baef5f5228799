"""The parts for the command line: starting their supervisor, stopping the parts in order, and their status."""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from lastword.core.errors import LastwordError
from lastword.core.home import private_folder
from lastword.kafka.broker.broker_log import last_lines
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.processes.process_lock import (
    end_group,
    end_process,
    is_held,
    is_running,
    running_pid,
    started_ms,
    wait_until_ended,
)
from lastword.processes.warden import DETACH, take
from lastword.up.desired_state import (
    OWNER_LOCK,
    SUPERVISOR,
    DesiredState,
    PartFiles,
    files_of,
    load_desired_state,
    save_desired_state,
)
from lastword.up.part_health import Health, load_health
from lastword.up.supervisor import CLUSTER, supervisor_command

_SUPERVISOR_S = 20.0
# A pipeline stops after its commit, and then its JVM has to stop.
_PART_S = 60.0


@dataclass(frozen=True, kw_only=True)
class PartStatus:
    """The status of one part; `since_ms` is None while the part does not run."""

    name: str
    pid: int | None
    since_ms: int | None
    log: Path
    health: Health

    @property
    def state(self) -> str:
        if self.pid is not None:
            return "running"
        return "stopped" if self.health.next_start_ms is None else "starting again"

    @property
    def last_end(self) -> str:
        """The last end of the part, as a line."""
        return f"{self.name} {self.health.last_exit}"


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """The parts under a home. `start` and `end` must be called inside `turn`."""

    folder: Path
    # Gets lines that the user must see.
    report: Callable[[str], None] = field(default=lambda _: None)
    # Gets the progress of long work.
    on_progress: Callable[[str], None] = field(default=lambda _: None)

    @property
    def wanted(self) -> DesiredState:
        return load_desired_state(self.folder)

    @property
    def is_supervised(self) -> bool:
        return is_running(self._files(SUPERVISOR))

    @property
    def is_running(self) -> bool:
        """Whether the parts should run, and a supervisor keeps them running."""
        return self.wanted.is_wanted and self.is_supervised

    @property
    def is_owned(self) -> bool:
        """Whether the parts belong to an `up` in the foreground that is running."""
        return self.wanted.is_owned and is_held(self.folder / OWNER_LOCK)

    def start(self, wanted: DesiredState, environment: Mapping[str, str]) -> bool:
        """Starts the supervisor; False if the same parts are supervised already. Other parts are stopped first."""
        known = self.wanted
        if self.is_running and known.parts == wanted.parts:
            # The earlier owner may have ended.
            save_desired_state(self.folder, replace(known, is_owned=wanted.is_owned))
            return False
        if known.parts != wanted.parts:
            self.end()
        if not any(is_running(self._files(part.name)) for part in wanted.parts):
            # A fresh start: restarts and ends of an earlier run no longer count.
            for name in [CLUSTER, *(part.name for part in wanted.parts)]:
                self._files(name).health.unlink(missing_ok=True)
        save_desired_state(self.folder, replace(wanted, is_wanted=True, ends_cluster=known.ends_cluster))
        self._start_supervisor(environment)
        return True

    def end(self, then: Callable[[str], None] = lambda _: None) -> list[str]:
        """Stops the supervisor, then the parts in reverse order, with `then` after each; the names of stopped parts."""
        known = self.wanted
        if known.is_wanted:
            save_desired_state(self.folder, replace(known, is_wanted=False))
        supervisor = self._files(SUPERVISOR)
        # The supervisor reads the file several times a second.
        if not wait_until_ended(supervisor, _SUPERVISOR_S) and (pid := running_pid(supervisor)) is not None:
            end_group(pid)
            wait_until_ended(supervisor, _SUPERVISOR_S)
        ended = []
        for name in [part.name for part in reversed(known.parts)]:
            files = self._files(name)
            if is_running(files):
                self.on_progress(f"stopping {name}")
                if not end_process(files, _PART_S):
                    self.report(f"{name} did not stop within {_PART_S:.0f} s and was killed")
                ended.append(name)
                then(name)
            files.health.unlink(missing_ok=True)
        return ended

    def claim_cluster(self, cluster: LocalCluster) -> None:
        """Notes before a start that `down` must stop the cluster, unless a broker of it runs already."""
        if not any(broker.pid for broker in cluster.status()):
            save_desired_state(self.folder, replace(self.wanted, ends_cluster=True))

    def disclaim_cluster(self) -> None:
        """Notes that `down` must not stop the cluster."""
        if self.wanted.ends_cluster:
            save_desired_state(self.folder, replace(self.wanted, ends_cluster=False))

    def status(self) -> list[PartStatus]:
        """The status of each part that should run, the supervisor last; empty if none should."""
        wanted = self.wanted
        names = [part.name for part in wanted.parts] if wanted.is_wanted else []
        return [self.part(name) for name in [*names, SUPERVISOR]] if names else []

    def part(self, name: str) -> PartStatus:
        files = self._files(name)
        pid = running_pid(files)
        since = None if pid is None else started_ms(files)
        return PartStatus(name=name, pid=pid, since_ms=since, log=files.log, health=load_health(files.health))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Only one command at a time starts or stops the parts; a second command waits."""
        private_folder(self.folder)
        with (self.folder / "turn.lock").open("a") as turn:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.report("another  lastword up  or  lastword down  is running: waiting for it")
                fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Parts that are started as owned in this block stop when this process ends, in any way."""
        private_folder(self.folder)
        with (self.folder / OWNER_LOCK).open("a") as owner:
            take(owner)
            yield

    def _start_supervisor(self, environment: Mapping[str, str]) -> None:
        files = self._files(SUPERVISOR)
        files.folder.mkdir(parents=True, exist_ok=True)
        with files.log.open("ab") as log:
            subprocess.run(
                ["/bin/sh", "-c", DETACH, "detach", *supervisor_command(self.folder)],
                cwd=files.folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=True,
            )
        give_up_at = time.monotonic() + _SUPERVISOR_S
        while not is_running(files):
            if time.monotonic() > give_up_at:
                lines = last_lines(files.log, 1, 0)
                raise LastwordError(
                    f"the supervisor does not start: {' '.join(lines) or 'no reason given'}: see {files.log}"
                )
            time.sleep(0.02)

    def _files(self, name: str) -> PartFiles:
        return files_of(self.folder, name)


class Ends:
    """The ends of parts from now on; each is reported once."""

    def __init__(self, upkeep: Upkeep) -> None:
        self._upkeep = upkeep
        self._seen = {part.name: _ended_ms(part) for part in upkeep.status()}
        self._counts: Counter[str] = Counter()

    def news(self) -> list[PartStatus]:
        fresh = [part for part in self._upkeep.status() if _ended_ms(part) not in (None, self._seen.get(part.name))]
        self._seen |= {part.name: _ended_ms(part) for part in fresh}
        self._counts.update(part.name for part in fresh)
        return fresh

    def of(self, name: str) -> int:
        return self._counts[name]


def _ended_ms(part: PartStatus) -> int | None:
    return None if part.health.last_exit is None else part.health.last_exit.at_ms
