"""The local cluster: real Apache Kafka as child processes, on loopback, durable under one home.

`LocalCluster.start()` makes what is missing and starts what is not running, so it is also how a cluster recovers: it
starts a killed broker again, and its result says what Kafka recovered. Ready means: the cluster answers with metadata,
and every broker is registered.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from lastword.core.errors import BrokerFailed, NotFound, PortTaken
from lastword.core.home import private_folder
from lastword.kafka.broker.broker_process import BrokerCommand, Warden, start_detached, stop_brokers
from lastword.kafka.broker.cluster_files import (
    ClusterSpec,
    check_cluster_name,
    check_settings,
    clusters_folder,
    load_spec,
    node_files,
    nodes_on_disk,
)
from lastword.kafka.broker.cluster_start import ClusterStart, Started
from lastword.kafka.broker.readiness import connection_to, settings_to_know
from lastword.kafka.broker.security import Security, client_file
from lastword.kafka.broker.start_request import StartRequest
from lastword.kafka.client.connection import Connection
from lastword.processes.process_lock import is_running, running_pid

_PORT_TRIES = 4
Report = Callable[[str], None]


def _report_nothing(_line: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class BrokerStatus:
    node_id: int
    port: int
    pid: int | None
    log: Path
    # Of a broker that does not run: whether it closed its logs in order, so that its next start recovers nothing.
    stopped_cleanly: bool


@dataclass(kw_only=True)
class LocalCluster:
    """A named cluster in `folder`; `owned` brokers end with this process, others keep running."""

    name: str
    folder: Path
    jars: Path
    owned: bool = False
    # A temporary folder: removed when the cluster ends.
    temporary: bool = False
    min_free_bytes: int = 512 * 1024 * 1024
    ready_timeout_s: float = 120.0
    # Of the brokers' Java, instead of those that map the class archive.
    jvm_options: tuple[str, ...] = ()
    report: Report = _report_nothing
    _warden: Warden | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_cluster_name(self.name)

    @classmethod
    def at(
        cls, home: Path, jars: Path, name: str = "default", *, owned: bool = False, report: Report = _report_nothing
    ) -> LocalCluster:
        return cls(name=name, folder=clusters_folder(home) / name, jars=jars, owned=owned, report=report)

    @classmethod
    def fresh(cls, jars: Path, name: str, *, report: Report = _report_nothing) -> LocalCluster:
        """A cluster in a temporary folder, which ends with this process and leaves nothing behind."""
        folder = Path(tempfile.mkdtemp(prefix=f"lastword-{name}-"))
        return cls(name=name, folder=folder, jars=jars, owned=True, temporary=True, report=report)

    @property
    def spec(self) -> ClusterSpec | None:
        return load_spec(self.folder)

    @property
    def client_file(self) -> Path | None:
        """The administrator's client settings, for `--config`; None if the cluster asks for no password."""
        spec = self.spec
        return None if spec is None or spec.security == "open" else client_file(self.folder)

    @property
    def connection(self) -> Connection:
        """For the administrator of a cluster that was started."""
        spec = self.spec
        if spec is None:
            raise NotFound(f"there is no cluster {self.name}: make it with  {self._start_command()}")
        return connection_to(self.folder, spec)

    def start(
        self,
        *,
        brokers: int | None = None,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        security: Security | None = None,
    ) -> Started:
        """Starts the brokers that do not run and returns when all are ready; port 0 takes free ports.

        A start that fails stops the brokers that it started, and restores the description of the cluster.
        """
        began = time.monotonic()
        check_settings(settings or {})
        request = StartRequest(brokers=brokers, port=port, settings=settings, security=security)
        with self._turn() as turn:
            if self.temporary and self._warden is None:
                self._warden = Warden(self.folder)
            self._check_disk()
            start = self._bring_up(request, turn)
        if start.readiness == "not yet":
            # The brokers keep running: one with much to recover may need longer, and after a kill it would begin again.
            files = nodes_on_disk(self.folder)[1]
            raise BrokerFailed(
                f"cluster {self.name} is not ready after {self.ready_timeout_s:.0f} s and is still starting: wait for "
                f"it with  {self._start_command()}  and see {files.log}",
                log_tail=files.log_tail(),
            )
        spec = self.spec
        return Started(
            bootstrap_servers=start.bootstrap_servers,
            started=tuple(sorted(start.started)),
            recovered=tuple(sorted(start.recovered)),
            cut_off=tuple(start.cut_off),
            warnings=tuple(settings_to_know(spec, self.folder)) if spec else (),
            seconds=time.monotonic() - began,
        )

    def stop(self, timeout_s: float = 30.0) -> tuple[int, ...]:
        """Stops every broker, in order first and by force after `timeout_s`; returns the brokers that ran."""
        running: list[int] = []
        if self.folder.is_dir():
            try:
                with self._turn():
                    nodes = nodes_on_disk(self.folder)
                    running += [node_id for node_id, files in nodes.items() if is_running(files)]
                    stop_brokers({node_id: nodes[node_id] for node_id in running}, timeout_s, report=self.report)
            finally:
                if self._warden is not None:
                    self._warden.dismiss()
                    self._warden = None
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
        return tuple(running)

    def close(self) -> None:
        """Stops the cluster if its brokers are ours; a cluster that ran already, or is detached, keeps running."""
        if self._warden is not None or self.temporary:
            self.stop()

    def status(self) -> tuple[BrokerStatus, ...]:
        """Each broker with its process id, or None if it does not run; empty when there is no such cluster."""
        spec = self.spec
        nodes = [(broker, node_files(self.folder, broker)) for broker in (spec.brokers if spec else ())]
        return tuple(
            BrokerStatus(
                node_id=broker.node_id,
                port=broker.port,
                pid=running_pid(files),
                log=files.log,
                stopped_cleanly=files.was_stopped_cleanly(),
            )
            for broker, files in nodes
        )

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bring_up(self, request: StartRequest, turn: IO[str]) -> ClusterStart:
        start = ClusterStart(
            name=self.name,
            folder=self.folder,
            jars=self.jars,
            jvm_options=self.jvm_options,
            ready_timeout_s=self.ready_timeout_s,
            launch=self._launch,
            report=self.report,
            turn=turn,
        )
        tries = _PORT_TRIES if request.port == 0 else 1
        # Tries again only if a broker that ran before has ended meanwhile, for example because it was just killed.
        while start.readiness == "one ended":
            try:
                start.bring_up(request)
            except PortTaken:
                # Any other free port will do.
                tries -= 1
                if not tries:
                    raise
        return start

    def _launch(self, commands: list[BrokerCommand]) -> None:
        if self.owned:
            self._warden = self._warden or Warden(None)
            self._warden.start(commands)
        else:
            start_detached(commands)

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.folder).free
        if free < self.min_free_bytes:
            raise BrokerFailed(
                f"only {free // 2**20} MiB free at {self.folder}, {self.min_free_bytes // 2**20} MiB are needed: "
                "make room, or set LASTWORD_HOME to a larger disk"
            )

    @contextmanager
    def _turn(self) -> Iterator[IO[str]]:
        """One command at a time starts or stops this cluster; a second command waits until the first is done."""
        try:
            private_folder(self.folder)
            with (self.folder / "cluster.lock").open("a") as turn:
                try:
                    fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self.report(f"another command is starting or stopping cluster {self.name}: waiting for it")
                    fcntl.flock(turn, fcntl.LOCK_EX)
                yield turn
        except OSError as failure:
            raise BrokerFailed(
                f"cluster {self.name} can't be kept at {failure.filename or self.folder}: "
                f"{failure.strerror or failure}: make room there, or set LASTWORD_HOME to another folder"
            ) from failure

    def _start_command(self) -> str:
        option = "" if self.name == "default" else f" --cluster {self.name}"
        return f"lastword broker start{option}"
