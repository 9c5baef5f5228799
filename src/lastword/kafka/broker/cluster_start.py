"""One start of a cluster: launches the brokers that do not run, waits until all are ready, undoes a failed start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from lastword.core.errors import BadInput
from lastword.jvm.jars import broker_jar_lock, ensure_jars
from lastword.jvm.java import find_java
from lastword.kafka.broker.broker_process import (
    BrokerCommand,
    Jvm,
    archive_options,
    broker_command,
    format_data,
    stop_brokers,
)
from lastword.kafka.broker.cluster_files import (
    BrokerSpec,
    ClusterSpec,
    NodeFiles,
    check_data_belongs,
    load_spec,
    node_files,
    remove_spec,
    save_spec,
    write_settings,
)
from lastword.kafka.broker.readiness import Readiness, await_ready, cut_off_at_start
from lastword.kafka.broker.security import (
    access_control,
    admin_settings,
    client_file,
    remove_access_control,
    write_client_file,
)
from lastword.kafka.broker.start_request import StartRequest, requested_spec, with_free_controller_ports
from lastword.processes.ports import check_port
from lastword.processes.process_lock import is_running

# A failed start soon kills the brokers that it started: nothing was written yet.
_STOP_AFTER_FAILURE_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Started:
    """What a start did: which brokers it started, which of them had to recover, and how long it took."""

    bootstrap_servers: str
    started: tuple[int, ...]
    recovered: tuple[int, ...]
    # The records that recovering brokers say they removed, each as `PARTITION from offset N on`. A log that is not
    # named may be damaged too: Kafka does not notice a log that was cut off between two batches.
    cut_off: tuple[str, ...]
    # Settings of the cluster that the broker does not know, and those that do harm.
    warnings: tuple[str, ...]
    seconds: float

    @property
    def recovery(self) -> str | None:
        """How the start recovered from a crash, as a sentence; None without a recovery."""
        if not self.recovered:
            return None
        which = f"broker {', '.join(map(str, self.recovered))} had not been stopped in order"
        if not self.cut_off:
            return (
                f"{which}: Kafka recovered its log and reported no damage (records missing at a log's end go unnoticed)"
            )
        return f"{which}: Kafka found its log damaged and cut off {', '.join(self.cut_off)}: those records are gone"


@dataclass(kw_only=True)
class ClusterStart:
    """A start under way; `bring_up` may be called again while `readiness` is "one ended"."""

    name: str
    folder: Path
    jars: Path
    # Of the brokers' Java, instead of those that map the class archive.
    jvm_options: tuple[str, ...]
    ready_timeout_s: float
    launch: Callable[[list[BrokerCommand]], None]
    report: Callable[[str], None]
    # The lock of `cluster.lock`, which this process holds.
    turn: IO[str]
    readiness: Readiness = "one ended"
    bootstrap_servers: str = ""
    started: set[int] = field(default_factory=set)
    recovered: set[int] = field(default_factory=set)
    cut_off: list[str] = field(default_factory=list)

    def bring_up(self, request: StartRequest) -> None:
        """Starts the brokers that do not run and waits for all of them; undoes everything when that fails."""
        known = load_spec(self.folder)
        spec = requested_spec(self.name, self.folder, known, request)
        stopped = [broker for broker in spec.brokers if not is_running(node_files(self.folder, broker))]
        if known is not None and spec != known and len(stopped) < len(spec.brokers):
            option = "" if self.name == "default" else f" --cluster {self.name}"
            raise BadInput(
                f"cluster {self.name} is running with other settings: stop it first with  lastword broker stop{option}"
            )
        if len(stopped) == len(spec.brokers):
            spec = with_free_controller_ports(spec)
            stopped = list(spec.brokers)
        log_sizes = {broker.node_id: node_files(self.folder, broker).log_size() for broker in stopped}
        formatted: list[NodeFiles] = []
        try:
            if stopped:
                self._launch(spec, stopped, formatted)
            self.readiness = await_ready(spec, self.folder, log_sizes, self.ready_timeout_s)
        except BaseException:
            self._undo(known, stopped, formatted)
            raise
        self.started.update(log_sizes)
        for broker in stopped:
            if broker.node_id in self.recovered:
                self.cut_off += cut_off_at_start(self.folder, broker, log_sizes[broker.node_id])
        self.bootstrap_servers = spec.bootstrap_servers

    def _launch(self, spec: ClusterSpec, stopped: list[BrokerSpec], formatted: list[NodeFiles]) -> None:
        """Starts the brokers' processes; `formatted` gets the brokers whose data is new."""
        for broker in stopped:
            check_port(broker.port, self.report)
        java = find_java()
        jvm = Jvm(java=java, jars=ensure_jars(broker_jar_lock(), self.jars, java, self.report))
        jvm = replace(jvm, options=self.jvm_options or archive_options(jvm, self.jars))
        is_new = not any(node_files(self.folder, broker).is_formatted() for broker in spec.brokers)
        access = access_control(self.folder, spec.security, java, is_new=is_new)
        save_spec(self.folder, spec)
        if spec.security != "open":
            path, settings = client_file(self.folder), admin_settings(self.folder, spec.security)
            write_client_file(path, spec.bootstrap_servers, settings)
        commands = []
        for broker in stopped:
            files = node_files(self.folder, broker)
            write_settings(files, spec, broker, access.broker_settings)
            if not check_data_belongs(files, spec, broker):
                formatted.append(files)
                format_data(jvm, files, spec, access.format_arguments, self.turn)
            elif files.has_run() and not files.was_stopped_cleanly():
                self.recovered.add(broker.node_id)
            files.format_arguments.unlink(missing_ok=True)
            files.output.unlink(missing_ok=True)
            # Before the broker takes its lock, so that the pid of its predecessor is never trusted.
            files.pid.unlink(missing_ok=True)
            commands.append((broker_command(jvm, files), files))
        self.launch(commands)

    def _undo(self, known: ClusterSpec | None, stopped: list[BrokerSpec], formatted: list[NodeFiles]) -> None:
        """After a failed start: stops the brokers that it started, and restores the description of the cluster."""
        files = {broker.node_id: node_files(self.folder, broker) for broker in stopped}
        running = {node_id: each for node_id, each in files.items() if is_running(each)}
        stop_brokers(running, _STOP_AFTER_FAILURE_S, report=lambda _line: None)
        if known is not None:
            save_spec(self.folder, known)
            return
        # The cluster did not exist before. Only data that this start formatted is removed: it holds nothing yet. The
        # description and the passwords go last: without them nobody could use data that is left.
        for each in formatted:
            shutil.rmtree(each.data, ignore_errors=True)
        if not any(each.is_formatted() for each in files.values()):
            remove_access_control(self.folder)
        remove_spec(self.folder)
