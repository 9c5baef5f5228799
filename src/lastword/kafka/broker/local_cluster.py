"""The local cluster: real Apache Kafka as child processes, on loopback, durable under one home.

`LocalCluster.start()` makes what is missing and starts what is not running, so it is also how a cluster recovers: a
killed broker is simply started again, and the start says what Kafka recovered. Ready means: metadata was answered and
every broker is registered.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from lastword.core.errors import BadInput, BrokerFailed, NotFound, PortTaken
from lastword.core.home import private_folder
from lastword.jvm.jars import broker_lock, ensure_jars
from lastword.jvm.java import find_java
from lastword.kafka.broker.broker_process import (
    Jvm,
    Warden,
    archive_options,
    broker_command,
    format_data,
    start_detached,
)
from lastword.kafka.broker.cluster_files import (
    BrokerSpec,
    ClusterSpec,
    NodeFiles,
    check_cluster_name,
    check_data_belongs,
    check_settings,
    clusters_folder,
    load_spec,
    new_cluster_id,
    node_files,
    nodes_on_disk,
    remove_spec,
    save_spec,
    write_settings,
)
from lastword.kafka.broker.readiness import Readiness, await_ready, connection_to, cut_off_at_start, settings_to_know
from lastword.kafka.broker.security import (
    Security,
    admin_settings,
    client_file,
    lock_of,
    remove_lock,
    write_client_file,
)
from lastword.kafka.client.connection import Connection
from lastword.processes.ports import PortPicker, check_port, is_ending, is_free
from lastword.processes.process_lock import is_running, running_pid, signal_process, wait_until_ended

DEFAULT_PORT = 9092
_PORT_TRIES = 4
_SECURITY_WORDS = {
    "open": "open to everyone on this machine",
    "scram": "with --secure",
    "scram-tls": "with --secure --tls",
}
Tell = Callable[[str], None]


def _say_nothing(_line: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class BrokerStatus:
    node_id: int
    port: int
    pid: int | None
    log: Path
    # Of one that does not run: whether it closed its logs in order, so that its next start has nothing to recover.
    stopped_cleanly: bool


@dataclass(frozen=True, kw_only=True)
class Started:
    """What a start did: which brokers it started, which of them had to recover, and how long it took."""

    bootstrap_servers: str
    started: tuple[int, ...]
    recovered: tuple[int, ...]
    # What recovering brokers say they took out of their logs, each as `PARTITION from offset N on`. That a log is not
    # named does not mean that it is whole: Kafka can't know what was cut off between two batches.
    cut_off: tuple[str, ...]
    # Settings of the cluster that the broker does not know, and those that do harm.
    warnings: tuple[str, ...]
    seconds: float

    @property
    def recovery(self) -> str | None:
        """What is known of a start after a crash, in words; None where nothing had to be recovered."""
        if not self.recovered:
            return None
        which = f"broker {', '.join(map(str, self.recovered))} had not been stopped in order"
        if not self.cut_off:
            return (
                f"{which}: Kafka recovered its log and reported no damage (records missing at a log's end go unnoticed)"
            )
        return f"{which}: Kafka found its log damaged and cut off {', '.join(self.cut_off)}: those records are gone"


@dataclass(kw_only=True)
class _Bringing:
    """How far a start has come."""

    readiness: Readiness = "one ended"
    bootstrap_servers: str = ""
    started: set[int] = field(default_factory=set)
    recovered: set[int] = field(default_factory=set)
    cut_off: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _StartRequest:
    """What a start was asked for; None for what is to stay as it was."""

    brokers: int | None
    port: int | None
    settings: Mapping[str, str] | None
    security: Security | None


@dataclass(kw_only=True)
class LocalCluster:
    """A named cluster in `folder`; `owned` brokers end with this process, others live on."""

    name: str
    folder: Path
    jars: Path
    owned: bool = False
    # A folder that is nobody's data: removed when the cluster ends.
    temporary: bool = False
    min_free_bytes: int = 512 * 1024 * 1024
    ready_timeout_s: float = 120.0
    # Of the brokers' Java, instead of those that map the class archive.
    jvm_options: tuple[str, ...] = ()
    tell: Tell = _say_nothing
    _warden: Warden | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_cluster_name(self.name)

    @classmethod
    def at(
        cls, home: Path, jars: Path, name: str = "default", *, owned: bool = False, tell: Tell = _say_nothing
    ) -> LocalCluster:
        return cls(name=name, folder=clusters_folder(home) / name, jars=jars, owned=owned, tell=tell)

    @classmethod
    def fresh(cls, jars: Path, name: str, *, tell: Tell = _say_nothing) -> LocalCluster:
        """A cluster in a temporary folder, which ends with this process and leaves nothing behind."""
        folder = Path(tempfile.mkdtemp(prefix=f"lastword-{name}-"))
        return cls(name=name, folder=folder, jars=jars, owned=True, temporary=True, tell=tell)

    @property
    def spec(self) -> ClusterSpec | None:
        return load_spec(self.folder)

    @property
    def client_file(self) -> Path | None:
        """How its administrator logs in, for `--config`; None where everyone is let in."""
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
        """Starts what is not running and returns when all is ready; port 0 takes free ones.

        A start that fails leaves nothing running that did not run before, and the cluster described as it was.
        """
        began = time.monotonic()
        check_settings(settings or {})
        with self._turn() as turn:
            if self.temporary and self._warden is None:
                self._warden = Warden(self.folder)
            self._check_disk()
            done = _Bringing()
            # Once, unless one that ran ends while we wait for the others, as one that was killed a moment ago does.
            tries = _PORT_TRIES if port == 0 else 1
            while done.readiness == "one ended":
                try:
                    self._bring_up(
                        done, turn, _StartRequest(brokers=brokers, port=port, settings=settings, security=security)
                    )
                except PortTaken:
                    # Of free ports any other will do.
                    tries -= 1
                    if not tries:
                        raise
        if done.readiness == "not yet":
            # Left alone: a broker with much to recover may need longer, and killed it would begin anew.
            files = nodes_on_disk(self.folder)[1]
            raise BrokerFailed(
                f"cluster {self.name} is not ready after {self.ready_timeout_s:.0f} s and goes on starting: wait for "
                f"it with  {self._start_command()}  and see {files.log}",
                log_tail=files.log_tail(),
            )
        spec = self.spec
        return Started(
            bootstrap_servers=done.bootstrap_servers,
            started=tuple(sorted(done.started)),
            recovered=tuple(sorted(done.recovered)),
            cut_off=tuple(done.cut_off),
            warnings=tuple(settings_to_know(spec, self.folder)) if spec else (),
            seconds=time.monotonic() - began,
        )

    def stop(self, timeout_s: float = 30.0) -> tuple[int, ...]:
        """Stops every broker, in order first and by force after `timeout_s`; returns those that ran."""
        running: list[int] = []
        if self.folder.is_dir():
            try:
                with self._turn():
                    nodes = nodes_on_disk(self.folder)
                    running += [node_id for node_id, files in nodes.items() if is_running(files)]
                    self._end({node_id: nodes[node_id] for node_id in running}, timeout_s, tell=self.tell)
            finally:
                if self._warden is not None:
                    self._warden.dismiss()
                    self._warden = None
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
        return tuple(running)

    def close(self) -> None:
        """Stops the cluster if its brokers are ours; one that ran already, or is detached, goes on running."""
        if self._warden is not None or self.temporary:
            self.stop()

    def status(self) -> tuple[BrokerStatus, ...]:
        """Each broker with its process id, or None for one that does not run; empty when there is no such cluster."""
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

    def _described(self, known: ClusterSpec | None, asked: _StartRequest) -> ClusterSpec:
        """The cluster as asked for: what is not asked for stays as it was at the last start."""
        brokers, port = asked.brokers, asked.port
        if brokers is not None and not 1 <= brokers <= 9:
            raise BadInput(f"--brokers {brokers}: from 1 to 9")
        if known is not None and brokers not in (None, len(known.brokers)):
            raise BadInput(
                f"cluster {self.name} was made with {len(known.brokers)} broker(s), which can't change: "
                "make another with  --cluster NAME"
            )
        if known is not None and asked.security not in (None, known.security):
            raise BadInput(
                f"cluster {self.name} was made {_SECURITY_WORDS[known.security]}, which can't change: make another "
                "in another home (export LASTWORD_HOME=~/another), or, for broker start, with  --cluster NAME"
            )
        if known is None:
            count, first = brokers or 1, DEFAULT_PORT if port is None else port
            return ClusterSpec(
                name=self.name,
                cluster_id=new_cluster_id(),
                brokers=_broker_specs(count, first),
                settings=_merged({}, asked.settings),
                security=asked.security or "open",
            )
        moves = port not in (None, 0, known.brokers[0].port) or (port == 0 and not self._ports_are_ours_or_free(known))
        if port is not None and moves:
            known = replace(known, brokers=_broker_specs(len(known.brokers), port))
        return replace(known, settings=_merged(known.settings, asked.settings))

    def _bring_up(self, done: _Bringing, turn: IO[str], asked: _StartRequest) -> None:
        """Starts what does not run and waits for all of it; takes everything back when that fails."""
        known = self.spec
        spec = self._described(known, asked)
        stopped = [broker for broker in spec.brokers if not is_running(node_files(self.folder, broker))]
        if known is not None and spec != known and len(stopped) < len(spec.brokers):
            raise BadInput(
                f"cluster {self.name} is running with other settings: stop it first with  "
                f"lastword broker stop{self._cluster_option()}"
            )
        if len(stopped) == len(spec.brokers):
            spec = _with_free_controller_ports(spec)
            stopped = list(spec.brokers)
        log_sizes = {broker.node_id: node_files(self.folder, broker).log_size() for broker in stopped}
        formatted: list[NodeFiles] = []
        try:
            if stopped:
                done.recovered.update(self._launch(spec, stopped, formatted, turn))
            done.readiness = await_ready(spec, self.folder, log_sizes, self.ready_timeout_s)
        except BaseException:
            self._take_back(known, stopped, formatted)
            raise
        done.started.update(log_sizes)
        for broker in stopped:
            if broker.node_id in done.recovered:
                done.cut_off += cut_off_at_start(self.folder, broker, log_sizes[broker.node_id])
        done.bootstrap_servers = spec.bootstrap_servers

    def _ports_are_ours_or_free(self, spec: ClusterSpec) -> bool:
        return all(is_running(node_files(self.folder, b)) or is_free(b.port) or is_ending(b.port) for b in spec.brokers)

    def _launch(
        self, spec: ClusterSpec, stopped: list[BrokerSpec], formatted: list[NodeFiles], turn: IO[str]
    ) -> tuple[int, ...]:
        """Starts the brokers and returns those that have to recover; `formatted` gets those whose data is new."""
        for broker in stopped:
            check_port(broker.port, self.tell)
        java = find_java()
        jvm = Jvm(java=java, jars=ensure_jars(broker_lock(), self.jars, java, self.tell))
        jvm = replace(jvm, options=self.jvm_options or archive_options(jvm, self.jars))
        recovered, commands = [], []
        is_new = not any(node_files(self.folder, broker).is_formatted() for broker in spec.brokers)
        lock = lock_of(self.folder, spec.security, java, is_new=is_new)
        save_spec(self.folder, spec)
        if spec.security != "open":
            path, settings = client_file(self.folder), admin_settings(self.folder, spec.security)
            write_client_file(path, spec.bootstrap_servers, settings)
        for broker in stopped:
            files = node_files(self.folder, broker)
            write_settings(files, spec, broker, lock.broker_settings)
            if not check_data_belongs(files, spec, broker):
                formatted.append(files)
                format_data(jvm, files, spec, lock.format_arguments, turn)
            elif files.has_run() and not files.was_stopped_cleanly():
                recovered.append(broker.node_id)
            files.format_arguments.unlink(missing_ok=True)
            files.output.unlink(missing_ok=True)
            # Before the broker takes its lock, so that nobody ever trusts the pid of its predecessor.
            files.pid.unlink(missing_ok=True)
            commands.append((broker_command(jvm, files), files))
        if self.owned:
            self._warden = self._warden or Warden(None)
            self._warden.start(commands)
        else:
            start_detached(commands)
        return tuple(recovered)

    def _take_back(self, known: ClusterSpec | None, stopped: list[BrokerSpec], formatted: list[NodeFiles]) -> None:
        """After a failed start: ends what it started, and describes the cluster as before."""
        files = {broker.node_id: node_files(self.folder, broker) for broker in stopped}
        self._end({node_id: each for node_id, each in files.items() if is_running(each)}, 3, tell=_say_nothing)
        if known is not None:
            save_spec(self.folder, known)
            return
        # It never was: data that we formatted just now holds nothing. Any other is somebody's. What describes it and
        # unlocks it goes last: without it data that is left would be nobody's.
        for each in formatted:
            shutil.rmtree(each.data, ignore_errors=True)
        if not any(each.is_formatted() for each in files.values()):
            remove_lock(self.folder)
        remove_spec(self.folder)

    @staticmethod
    def _end(running: Mapping[int, NodeFiles], timeout_s: float, *, tell: Tell) -> None:
        for files in running.values():
            signal_process(files, signal.SIGTERM)
        give_up_at = time.monotonic() + timeout_s
        for node_id, files in running.items():
            if wait_until_ended(files, max(0.0, give_up_at - time.monotonic())):
                continue
            tell(f"broker {node_id} did not stop in {timeout_s:.0f} s and was killed; its next start recovers")
            signal_process(files, signal.SIGKILL)
            if not wait_until_ended(files, 5):
                raise BrokerFailed(f"broker {node_id} could not be stopped: end the process that holds {files.running}")

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.folder).free
        if free < self.min_free_bytes:
            raise BrokerFailed(
                f"only {free // 2**20} MiB free at {self.folder}, {self.min_free_bytes // 2**20} MiB are needed: "
                "make room, or set LASTWORD_HOME to a larger disk"
            )

    @contextmanager
    def _turn(self) -> Iterator[IO[str]]:
        """One command at a time starts or stops this cluster; a second one waits and then finds it done."""
        try:
            private_folder(self.folder)
            with (self.folder / "cluster.lock").open("a") as turn:
                try:
                    fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self.tell(f"another command is starting or stopping cluster {self.name}: waiting for it")
                    fcntl.flock(turn, fcntl.LOCK_EX)
                yield turn
        except OSError as failure:
            raise BrokerFailed(
                f"cluster {self.name} can't be kept at {failure.filename or self.folder}: "
                f"{failure.strerror or failure}: make room there, or set LASTWORD_HOME to another folder"
            ) from failure

    def _cluster_option(self) -> str:
        return "" if self.name == "default" else f" --cluster {self.name}"

    def _start_command(self) -> str:
        return f"lastword broker start{self._cluster_option()}"


def _with_free_controller_ports(spec: ClusterSpec) -> ClusterSpec:
    """Controller ports are nobody's choice: while all brokers are down, ones that were taken meanwhile move."""
    if all(is_free(broker.controller_port) for broker in spec.brokers):
        return spec
    with PortPicker(but_not=[broker.port for broker in spec.brokers]) as ports:
        return replace(spec, brokers=tuple(replace(b, controller_port=ports.free()) for b in spec.brokers))


def _merged(known: Mapping[str, str], asked: Mapping[str, str] | None) -> dict[str, str]:
    """The settings so far with those asked for; an empty value gives a setting back to its default."""
    return {name: value for name, value in {**known, **(asked or {})}.items() if value != ""}


def _broker_specs(count: int, first_port: int) -> tuple[BrokerSpec, ...]:
    given = range(first_port, first_port + count) if first_port else ()
    if not all(1 <= port <= 65535 for port in given):
        raise BadInput(f"--port {first_port}: from 1 to {65536 - count}, or 0 for free ones")
    with PortPicker(but_not=given) as ports:
        return tuple(
            BrokerSpec(node_id=i + 1, port=given[i] if given else ports.free(), controller_port=ports.free())
            for i in range(count)
        )
