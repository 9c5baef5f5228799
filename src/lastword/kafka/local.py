"""The local cluster: real Apache Kafka as child processes, on loopback, durable under one home.

`LocalCluster.start()` makes what is missing and starts what is not running, so it is also how a cluster recovers: a
killed broker is simply started again, and says that it had to recover. Ready means: metadata was answered and every
broker is registered.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lastword.core.errors import BadInput, BrokerFailed
from lastword.kafka.broker_process import (
    Jvm,
    broker_command,
    format_data,
    is_running,
    running_pid,
    signal_broker,
    start_detached,
    start_owned,
    wait_until_ended,
)
from lastword.kafka.cluster_files import (
    BrokerSpec,
    ClusterSpec,
    NodeFiles,
    check_cluster_name,
    check_data_belongs,
    check_settings,
    load_spec,
    new_cluster_id,
    node_files,
    save_spec,
    write_settings,
)
from lastword.kafka.connection import Connection
from lastword.kafka.jars import broker_lock, ensure_jars
from lastword.kafka.java import find_java
from lastword.kafka.ports import PortPicker, check_port, is_free

DEFAULT_PORT = 9092
Tell = Callable[[str], None]


def _say_nothing(_line: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class BrokerStatus:
    node_id: int
    port: int
    pid: int | None
    log: Path


@dataclass(frozen=True, kw_only=True)
class Started:
    """What a start did: which brokers it started, which of them had to recover, and how long it took."""

    bootstrap_servers: str
    started: tuple[int, ...]
    recovered: tuple[int, ...]
    seconds: float


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
    ready_timeout_s: float = 60.0
    tell: Tell = _say_nothing
    _wardens: list[subprocess.Popen[str]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        check_cluster_name(self.name)

    @classmethod
    def at(
        cls, home: Path, jars: Path, name: str = "default", *, owned: bool = False, tell: Tell = _say_nothing
    ) -> LocalCluster:
        return cls(name=name, folder=home / "clusters" / name, jars=jars, owned=owned, tell=tell)

    @property
    def spec(self) -> ClusterSpec | None:
        return load_spec(self.folder)

    def start(
        self, *, brokers: int | None = None, port: int | None = None, settings: Mapping[str, str] | None = None
    ) -> Started:
        """Starts what is not running and returns when all is ready; port 0 takes free ones."""
        began = time.monotonic()
        check_settings(settings or {})
        with self._lock():
            self._check_disk()
            known = self.spec
            spec = self._described(known, brokers, port, settings)
            stopped = [broker for broker in spec.brokers if not is_running(node_files(self.folder, broker))]
            if known is not None and spec != known and len(stopped) < len(spec.brokers):
                raise BadInput(
                    f"cluster {self.name} is running with other settings: stop it first with  "
                    f"lastword broker stop{self._cluster_option()}"
                )
            recovered = self._launch(spec, stopped) if stopped else ()
            self._await_ready(spec)
        return Started(
            bootstrap_servers=spec.bootstrap_servers,
            started=tuple(broker.node_id for broker in stopped),
            recovered=recovered,
            seconds=time.monotonic() - began,
        )

    def stop(self, timeout_s: float = 30.0) -> tuple[int, ...]:
        """Stops every broker, in order first and by force after `timeout_s`; returns those that ran."""
        with self._lock():
            spec = self.spec
            nodes = {b.node_id: node_files(self.folder, b) for b in spec.brokers} if spec else {}
            running = [node_id for node_id, files in nodes.items() if is_running(files)]
            for node_id in running:
                signal_broker(nodes[node_id], signal.SIGTERM)
            give_up_at = time.monotonic() + timeout_s
            for node_id in running:
                if not wait_until_ended(nodes[node_id], max(0.0, give_up_at - time.monotonic())):
                    self.tell(
                        f"broker {node_id} did not stop in {timeout_s:.0f} s and was killed; its next start recovers"
                    )
                    signal_broker(nodes[node_id], signal.SIGKILL)
                    wait_until_ended(nodes[node_id], 10)
            self._dismiss_wardens()
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
        return tuple(running)

    def status(self) -> tuple[BrokerStatus, ...]:
        """Each broker with its process id, or None for one that does not run; empty when there is no such cluster."""
        spec = self.spec
        return tuple(
            BrokerStatus(
                node_id=broker.node_id,
                port=broker.port,
                pid=running_pid(node_files(self.folder, broker)),
                log=node_files(self.folder, broker).log,
            )
            for broker in (spec.brokers if spec else ())
        )

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _described(
        self, known: ClusterSpec | None, brokers: int | None, port: int | None, settings: Mapping[str, str] | None
    ) -> ClusterSpec:
        """The cluster as asked for: what is not asked for stays as it was at the last start."""
        if brokers is not None and not 1 <= brokers <= 9:
            raise BadInput(f"--brokers {brokers}: from 1 to 9")
        if known is not None and brokers not in (None, len(known.brokers)):
            raise BadInput(
                f"cluster {self.name} was made with {len(known.brokers)} broker(s), which can't change: "
                "make another with  --cluster NAME"
            )
        if known is None:
            count, first = brokers or 1, DEFAULT_PORT if port is None else port
            with PortPicker() as ports:
                specs = _broker_specs(count, first, ports)
            return ClusterSpec(
                name=self.name, cluster_id=new_cluster_id(), brokers=specs, settings=_merged({}, settings)
            )
        moves = port not in (None, 0, known.brokers[0].port) or (port == 0 and not self._ports_are_ours_or_free(known))
        if port is not None and moves:
            with PortPicker() as ports:
                known = replace(known, brokers=_broker_specs(len(known.brokers), port, ports))
        return replace(known, settings=_merged(known.settings, settings))

    def _ports_are_ours_or_free(self, spec: ClusterSpec) -> bool:
        return all(is_running(node_files(self.folder, b)) or is_free(b.port) for b in spec.brokers)

    def _launch(self, spec: ClusterSpec, stopped: list[BrokerSpec]) -> tuple[int, ...]:
        for broker in stopped:
            check_port(broker.port)
        java = find_java()
        jvm = Jvm(java=java, jars=ensure_jars(broker_lock(), self.jars, java, self.tell))
        recovered, commands = [], []
        spec = self._with_free_controller_ports(spec, stopped)
        save_spec(self.folder, spec)
        for broker in stopped:
            files = node_files(self.folder, broker)
            logging = write_settings(files, spec, broker)
            if not check_data_belongs(files, spec, broker):
                format_data(jvm, files, spec)
            elif files.has_run() and not files.was_stopped_cleanly():
                recovered.append(broker.node_id)
            files.output.unlink(missing_ok=True)
            archive = self.jars / f"broker-java{java.version}.jsa"
            commands.append((broker_command(jvm, files, logging, archive), files))
        if self.owned:
            self._wardens.append(start_owned(commands, self.folder if self.temporary else None))
        else:
            for command, files in commands:
                start_detached(command, files)
        return tuple(recovered)

    def _with_free_controller_ports(self, spec: ClusterSpec, stopped: list[BrokerSpec]) -> ClusterSpec:
        """Controller ports are nobody's choice: when all brokers are down, ones that were taken meanwhile move."""
        if len(stopped) < len(spec.brokers) or all(is_free(b.controller_port) for b in spec.brokers):
            return spec
        with PortPicker() as ports:
            return replace(spec, brokers=tuple(replace(b, controller_port=ports.free()) for b in spec.brokers))

    def _await_ready(self, spec: ClusterSpec) -> None:
        from confluent_kafka import KafkaException

        admin = Connection(bootstrap_servers=spec.bootstrap_servers).admin()
        give_up_at = time.monotonic() + self.ready_timeout_s
        while True:
            for broker in spec.brokers:
                files = node_files(self.folder, broker)
                if not is_running(files):
                    raise _died(broker, files)
            try:
                if len(admin.list_topics(timeout=0.25).brokers) == len(spec.brokers):
                    return
            except KafkaException:
                pass
            if time.monotonic() > give_up_at:
                files = node_files(self.folder, spec.brokers[0])
                raise BrokerFailed(
                    f"cluster {self.name} was not ready after {self.ready_timeout_s:.0f} s: see {files.log}",
                    log_tail=files.log_tail(),
                )
            time.sleep(0.02)

    def _check_disk(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < self.min_free_bytes:
            raise BrokerFailed(
                f"only {free // 2**20} MiB free at {self.folder}, {self.min_free_bytes // 2**20} MiB are needed: "
                "make room, or set LASTWORD_HOME to a larger disk"
            )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One command at a time starts or stops this cluster; a second one waits and then finds it done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "cluster.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.tell(f"another command is starting or stopping cluster {self.name}: waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _dismiss_wardens(self) -> None:
        for warden in self._wardens:
            for stream in (warden.stdin, warden.stdout):
                if stream is not None:
                    stream.close()
            warden.wait()
        self._wardens.clear()

    def _cluster_option(self) -> str:
        return "" if self.name == "default" else f" --cluster {self.name}"


def _died(broker: BrokerSpec, files: NodeFiles) -> BrokerFailed:
    tail = files.log_tail(40)
    text = "\n".join(tail)
    if "Address already in use" in text:
        reason = "a port was taken while it started: start it again, or choose another with --port"
    elif "Failed to acquire lock on file .lock" in text:
        reason = f"its data folder {files.data} is in use by another live process: stop that one first"
    elif "No space left on device" in text:
        reason = "the disk is full: make room and start it again"
    else:
        reason = f"see the lines below, and {files.log}"
    return BrokerFailed(f"broker {broker.node_id} died while starting: {reason}", log_tail=tail[-12:])


def _merged(known: Mapping[str, str], asked: Mapping[str, str] | None) -> dict[str, str]:
    """The settings so far with those asked for; an empty value gives a setting back to its default."""
    return {name: value for name, value in {**known, **(asked or {})}.items() if value != ""}


def _broker_specs(count: int, first_port: int, ports: PortPicker) -> tuple[BrokerSpec, ...]:
    chosen = [ports.free() if first_port == 0 else first_port + i for i in range(count)]
    if not all(1 <= port <= 65535 for port in chosen):
        raise BadInput(f"--port {first_port}: from 1 to {65536 - count}, or 0 for free ones")
    return tuple(BrokerSpec(node_id=i + 1, port=port, controller_port=ports.free()) for i, port in enumerate(chosen))
