"""Keeps one part running: restarts it when it ends, each time after a longer wait.

A part outlives its supervisor. The next supervisor finds the part by its lock and takes it over, so there is never a
second process. Only the exit code of a process that another supervisor started is unknown.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from lastword.core.clock import now_ms
from lastword.kafka.broker.cluster_files import NodeFiles, load_spec, node_files
from lastword.processes.process_lock import end_group, is_running, started_ms
from lastword.processes.warden import spawn
from lastword.up.desired_state import Part, PartFiles
from lastword.up.part_health import Exit, last_words, load_health, save_health

_LONGEST_WAIT_S = 30.0
# A run this long counts as healthy: reset the backoff.
_LONG_RUN_S = 60.0
_LOG_BYTES = 5 * 1024 * 1024


class Backoff:
    """How long to wait before the next start: 1, 2, 4 ... 30 s, and 1 s again after a long run."""

    def __init__(self) -> None:
        self._ends = 0

    def after(self, ran_s: float) -> float:
        if ran_s >= _LONG_RUN_S:
            self._ends = 0
        self._ends += 1
        return min(_LONGEST_WAIT_S, 2.0 ** (self._ends - 1))


class PartRecord:
    """The files of a part, and when it may start next."""

    def __init__(self, files: PartFiles) -> None:
        self._files = files
        self._health = load_health(files.health)
        self._backoff = Backoff()
        self._start_at_ms = 0

    @property
    def is_due(self) -> bool:
        return now_ms() >= self._start_at_ms

    @property
    def log_from(self) -> int:
        return self._health.log_from

    def starts(self) -> None:
        """Must be called before each start. A log that has grown long is moved aside."""
        self._files.folder.mkdir(parents=True, exist_ok=True)
        log = self._files.log
        size = log.stat().st_size if log.exists() else 0
        if size > _LOG_BYTES:
            log.replace(log.with_name("log.1"))
            size = 0
        # Before the new process takes the lock, so that no reader trusts the pid of the old one.
        self._files.pid.unlink(missing_ok=True)
        self._health = self._health.started(size)
        save_health(self._files.health, self._health)

    def ended(self, code: int | None, said: str, began_ms: int | None) -> None:
        now = now_ms()
        wait_s = self._backoff.after(0 if began_ms is None else (now - began_ms) / 1000)
        self._start_at_ms = now + round(wait_s * 1000)
        end = Exit(at_ms=now, code=code, said=said)
        self._health = replace(self._health, last_exit=end, next_start_ms=self._start_at_ms)
        save_health(self._files.health, self._health)


class PartKeeper:
    """Keeps one part running. Call `look` a few times a second."""

    def __init__(self, part: Part, files: PartFiles) -> None:
        self._part = part
        self._files = files
        self._record = PartRecord(files)
        self._child: subprocess.Popen[bytes] | None = None
        # A process that an earlier supervisor started belongs to this one from now on.
        self._is_up = is_running(files)

    def look(self) -> None:
        """Starts the part if it is due, or records its end."""
        if self._is_alive():
            return
        if self._is_up:
            self._ended()
        elif self._record.is_due:
            self._start()

    def kill(self) -> None:
        """Kills the part and all processes that it has started."""
        if self._child is not None:
            end_group(self._child.pid)
            self._child.wait()

    def _is_alive(self) -> bool:
        return is_running(self._files) if self._child is None else self._child.poll() is None

    def _ended(self) -> None:
        code = None
        if self._child is not None:
            # Processes that the part had started, like Spark's JVM, must not run beside those of the next start.
            end_group(self._child.pid)
            code, self._child = self._child.wait(), None
        self._is_up = False
        said = last_words(self._files.log, self._record.log_from, code)
        self._record.ended(code, said, started_ms(self._files))

    def _start(self) -> None:
        files = self._files
        self._record.starts()
        self._is_up = True
        with suppress(BlockingIOError):  # the part runs already, as a child of another process
            self._child = spawn(
                list(self._part.command), lock=str(files.running), pid=str(files.pid), output=str(files.log)
            )


class ClusterKeeper:
    """Keeps the brokers of a cluster running. They are not child processes: a command starts them, and ends."""

    def __init__(self, command: tuple[str, ...], cluster: Path, files: PartFiles) -> None:
        self._command = command
        self._cluster = cluster
        self._files = files
        self._record = PartRecord(files)
        self._starter: subprocess.Popen[bytes] | None = None
        self._is_up = True

    def look(self) -> None:
        """Starts the brokers if they are due, or records their end."""
        if self._starter is not None:
            self._look_at_start(self._starter)
            return
        gone = self._gone()
        if not gone:
            self._is_up = True
        elif self._is_up:
            self._is_up = False
            self._record.ended(None, gone, self._began_ms())
        elif self._record.is_due:
            self._record.starts()
            with self._files.log.open("ab") as log:
                self._starter = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )

    def settle(self) -> None:
        """Waits for a start that is under way."""
        if self._starter is not None:
            self._starter.wait()

    def _look_at_start(self, starter: subprocess.Popen[bytes]) -> None:
        code = starter.poll()
        if code is None:
            return
        self._starter = None
        if code != 0:
            self._record.ended(code, last_words(self._files.log, self._record.log_from, code), None)

    def _gone(self) -> str:
        """The first broker that is gone, as a line; empty if all brokers run."""
        nodes = self._nodes()
        names = [f"broker {node_id} is gone: see {files.log}" for node_id, files in nodes if not is_running(files)]
        return names[0] if names else ""

    def _began_ms(self) -> int | None:
        return max((began for _, files in self._nodes() if (began := started_ms(files)) is not None), default=None)

    def _nodes(self) -> list[tuple[int, NodeFiles]]:
        spec = load_spec(self._cluster)
        return [(broker.node_id, node_files(self._cluster, broker)) for broker in (spec.brokers if spec else ())]
