"""What a local cluster is on disk: its description, and for each broker a folder with settings, log and data.

clusters/NAME/cluster.json          name, cluster id, brokers with their ports, extra broker settings
clusters/NAME/cluster.lock          held while a command starts or stops the cluster
clusters/NAME/node-1/server.properties
clusters/NAME/node-1/broker.log     what the broker says (rolled at 20 MB)
clusters/NAME/node-1/broker.out     what its JVM says
clusters/NAME/node-1/running.lock   held by the broker's process as long as it lives
clusters/NAME/node-1/pid
clusters/NAME/node-1/data/          Kafka's own
"""

from __future__ import annotations

import base64
import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lastword.core.errors import BadInput, BrokerFailed

# Settings that tie the parts of a local cluster together; changing one by hand would only break it.
_OURS = ("process.roles", "node.id", "listeners", "advertised.listeners", "log.dirs", "metadata.log.dir")
_OURS_PREFIXES = ("controller.",)


@dataclass(frozen=True, kw_only=True)
class BrokerSpec:
    node_id: int
    port: int
    controller_port: int


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    name: str
    cluster_id: str
    brokers: tuple[BrokerSpec, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)


@dataclass(frozen=True, kw_only=True)
class NodeFiles:
    """The places of one broker."""

    folder: Path

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def output(self) -> Path:
        return self.folder / "broker.out"

    @property
    def running(self) -> Path:
        return self.folder / "running.lock"

    @property
    def pid(self) -> Path:
        return self.folder / "pid"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def has_run(self) -> bool:
        return (self.data / "__cluster_metadata-0").is_dir()

    def was_stopped_cleanly(self) -> bool:
        """Kafka leaves a marker when it closes its logs in order, and removes it when it opens them."""
        return (self.data / ".kafka_cleanshutdown").exists()

    def log_tail(self, lines: int = 12) -> tuple[str, ...]:
        """The last lines of what the broker and its JVM said."""
        said = [line for path in (self.log, self.output) if path.exists() for line in _last_lines(path, lines)]
        return tuple(said[-lines:])


def new_cluster_id() -> str:
    # Not with a dash in front, as one in 64 would have: Kafka's tools take it for an option.
    return next(text for text in iter(_random_id, None) if not text.startswith("-"))


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def check_cluster_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise BadInput(f"cluster name {name!r}: use letters, digits, '-', '_' and '.', at most 64, no '.' in front")


def check_settings(settings: Mapping[str, str]) -> None:
    for name in settings:
        if name in _OURS or name.startswith(_OURS_PREFIXES):
            raise BadInput(f"--set {name}: lastword sets this one itself; ports are chosen with --port")


def load_spec(folder: Path) -> ClusterSpec | None:
    """The cluster described in `folder`, or None when there is none."""
    path = folder / "cluster.json"
    try:
        told = json.loads(path.read_text())
        brokers = tuple(BrokerSpec(**broker) for broker in told["brokers"])
        return ClusterSpec(**{**told, "brokers": brokers})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as damage:
        raise BrokerFailed(
            f"{path} can't be read ({damage}): restore it, or remove the folder {folder} to start afresh "
            "(its topics go with it)"
        ) from None


def save_spec(folder: Path, spec: ClusterSpec) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "cluster.json.new"
    with written.open("w") as file:
        json.dump(asdict(spec), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    # Rename last: a description that is there is whole.
    written.replace(folder / "cluster.json")


def node_files(folder: Path, broker: BrokerSpec) -> NodeFiles:
    return NodeFiles(folder=folder / f"node-{broker.node_id}")


def check_data_belongs(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec) -> bool:
    """Whether the data folder is formatted; BrokerFailed when it is another cluster's or another broker's."""
    try:
        text = (files.data / "meta.properties").read_text()
    except FileNotFoundError:
        return False
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    for name, expected in (("cluster.id", spec.cluster_id), ("node.id", str(broker.node_id))):
        if told.get(name) != expected:
            raise BrokerFailed(
                f"{files.data} belongs to another cluster ({name} is {told.get(name)}, expected {expected}): "
                "move it back where it came from, or start a cluster with another --cluster NAME"
            )
    return True


def write_settings(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec) -> Path:
    """server.properties and the logging settings; returns the latter's path."""
    files.folder.mkdir(parents=True, exist_ok=True)
    lines = {**_server_properties(files, spec, broker), **spec.settings}
    files.properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    logging = files.folder / "log4j2.properties"
    logging.write_text(_LOGGING.format(log=files.log))
    return logging


def _server_properties(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec) -> dict[str, str]:
    copies = min(3, len(spec.brokers))
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.node_id),
        "controller.quorum.voters": ",".join(f"{b.node_id}@127.0.0.1:{b.controller_port}" for b in spec.brokers),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.port}",
        "log.dirs": str(files.data),
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(max(1, copies - 1)),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(max(1, copies - 1)),
        # A laptop's cluster has a handful of groups and transactions: 50 partitions of each would only slow the start.
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
        # A mistyped topic name must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        # The cleaner looks for work every half second, not every 15: here someone is waiting for it.
        "log.cleaner.backoff.ms": "500",
        # A killed broker may register again only when its old session has run out: 3 s to wait, not 9.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(64 * 1024 * 1024),
    }


_LOGGING = """\
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={log}
appender.file.filePattern={log}.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c{{1}})%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=20MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=2
"""


def _last_lines(path: Path, count: int) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        return file.read().decode(errors="replace").splitlines()[-count:]
