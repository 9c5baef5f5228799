"""The files of a local cluster: its description, and for each broker a folder with settings, log and data.

clusters/NAME/cluster.json          name, cluster id, brokers with their ports, extra broker settings
clusters/NAME/cluster.lock          held while a command starts or stops the cluster
clusters/NAME/node-1/server.properties, broker-logging.properties
clusters/NAME/node-1/broker.log     the log of the broker (rolled at 20 MB)
clusters/NAME/node-1/broker.out     the output of its JVM
clusters/NAME/node-1/running.lock   held by the broker's process as long as it lives
clusters/NAME/node-1/pid
clusters/NAME/node-1/data/          Kafka's own
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from lastword.core.durable import write_durably
from lastword.core.errors import BadInput, BrokerFailed
from lastword.core.home import private_folder
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.kafka.broker.broker_log import last_lines
from lastword.kafka.broker.security import Security
from lastword.processes.process_lock import ProcessFiles

# Settings that tie the parts of a local cluster together: a change by hand would break the cluster.
_OURS = ("process.roles", "node.id", "listeners", "advertised.listeners", "log.dir", "log.dirs", "metadata.log.dir")
_OURS_PREFIXES = (
    *("controller.", "listener.", "inter.broker.", "early.start."),
    # Who is let in.
    *("sasl.", "ssl.", "security.", "authorizer.", "super.users", "allow.everyone.", "principal.", "config.providers"),
)


class BrokerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    node_id: int
    port: int
    controller_port: int


class ClusterSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`cluster.json`. Files of older versions lack the fields with a default."""

    name: str
    cluster_id: str
    brokers: tuple[BrokerSpec, ...]
    settings: Mapping[str, str] = {}
    security: Security = "open"

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)


@dataclass(frozen=True, kw_only=True)
class NodeFiles(ProcessFiles):
    """The files of one broker."""

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
    def logging(self) -> Path:
        return self.folder / "broker-logging.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def format_arguments(self) -> Path:
        """The arguments of the formatting tool, while it runs."""
        return self.folder / "format.arguments"

    def is_formatted(self) -> bool:
        return (self.data / "meta.properties").exists()

    def has_run(self) -> bool:
        return (self.data / "__cluster_metadata-0").is_dir()

    def was_stopped_cleanly(self) -> bool:
        """Kafka leaves a marker when it closes its logs in order, and removes it when it opens them."""
        return (self.data / ".kafka_cleanshutdown").exists()

    def log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def log_tail(self, lines: int = 12, *, since: int = 0) -> tuple[str, ...]:
        """The last lines of the broker and its JVM; without the first `since` bytes of the broker's log."""
        tail = [
            line
            for path, start in ((self.log, since), (self.output, 0))
            if path.exists()
            for line in last_lines(path, lines, start)
        ]
        return tuple(tail[max(0, len(tail) - lines) :])


def new_cluster_id() -> str:
    # No dash in front, as one id in 64 would have: Kafka's tools would take the id for an option.
    return next(text for text in iter(_random_id, None) if not text.startswith("-"))


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def check_cluster_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise BadInput(f"cluster name {name!r}: use letters, digits, '-', '_' and '.', at most 64, no '.' in front")


def check_settings(settings: Mapping[str, str]) -> None:
    """BadInput for a setting that a user can't give to brokers."""
    for name, value in settings.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise BadInput(f"--set {name}: not the name of a setting: write it like log.cleaner.threads=2")
        if name in _OURS or name.startswith(_OURS_PREFIXES):
            raise BadInput(f"--set {name}: lastword sets this one itself; see --port, --secure and --tls")
        # A program without type checks may give a number, and `cluster.json` with a number can't be read again.
        if not isinstance(value, str):
            raise BadInput(f"the setting {name} is {value!r}: give it as text, like {str(value)!r}")


def load_spec(folder: Path) -> ClusterSpec | None:
    """The cluster described in `folder`; None when there is none."""
    path = folder / "cluster.json"
    try:
        spec = from_json_text(path.read_bytes(), ClusterSpec)
        if not spec.brokers:
            raise ValueError("it has no brokers")
        return spec
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as damage:
        raise BrokerFailed(
            f"{path} can't be read ({damage}): restore it, or stop the cluster and remove the folder {folder} "
            "to start afresh (its topics go with it)"
        ) from None


def clusters_folder(home: Path) -> Path:
    """The folder of all local clusters of a home; each cluster has a folder of its name inside."""
    return home / "clusters"


def is_of_home(home: Path, cluster_id: str) -> bool:
    """Whether a local cluster under the home has this id; a cluster whose description can't be read does not count."""
    for folder in clusters_folder(home).glob("*"):
        with suppress(BrokerFailed):
            spec = load_spec(folder)
            if spec is not None and spec.cluster_id == cluster_id:
                return True
    return False


def save_spec(folder: Path, spec: ClusterSpec) -> None:
    private_folder(folder)
    write_durably(folder / "cluster.json", json_text(spec, indent=2).encode())


def remove_spec(folder: Path) -> None:
    (folder / "cluster.json").unlink(missing_ok=True)


def node_files(folder: Path, broker: BrokerSpec) -> NodeFiles:
    return NodeFiles(folder=folder / f"node-{broker.node_id}")


def nodes_on_disk(folder: Path) -> dict[int, NodeFiles]:
    """Every broker that has a folder on disk, also if cluster.json is missing or damaged."""
    nodes = (path for path in folder.glob("node-*") if path.name[5:].isdecimal())
    return dict(sorted((int(path.name[5:]), NodeFiles(folder=path)) for path in nodes))


def check_data_belongs(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec) -> bool:
    """Whether the data folder is formatted; BrokerFailed if it belongs to another cluster or broker."""
    try:
        text = (files.data / "meta.properties").read_text()
    except FileNotFoundError:
        return False
    properties = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    for name, expected in (("cluster.id", spec.cluster_id), ("node.id", str(broker.node_id))):
        if properties.get(name) != expected:
            raise BrokerFailed(
                f"{files.data} belongs to another cluster ({name} is {properties.get(name)}, expected {expected}): "
                "move it back where it came from, or start a cluster with another --cluster NAME"
            )
    return True


def write_settings(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec, secure: Mapping[str, str]) -> None:
    """Writes the broker's server.properties and its logging settings; `secure` has its security settings."""
    if "," in str(files.data):
        raise BadInput(f"{files.data} has a comma, where Kafka sees two folders: set LASTWORD_HOME to another one")
    files.folder.mkdir(parents=True, exist_ok=True)
    lines = {**_server_properties(files, spec, broker), **secure, **spec.settings}
    text = "".join(f"{name}={_escaped(value)}\n" for name, value in lines.items())
    write_durably(files.properties, text.encode())
    files.logging.write_text(_LOGGING.format(log=files.log.name))


def _escaped(value: str) -> str:
    """The value as Java's properties files have it: they are Latin-1, and a backslash is not itself."""
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(code) if 32 < code < 127 and code != ord("\\") else f"\\u{code:04x}" for code in codes)


def _server_properties(files: NodeFiles, spec: ClusterSpec, broker: BrokerSpec) -> dict[str, str]:
    copies = min(3, len(spec.brokers))
    clients = f"{'PLAINTEXT' if spec.security == 'open' else 'CLIENTS'}://127.0.0.1:{broker.port}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.node_id),
        "controller.quorum.voters": ",".join(f"{b.node_id}@127.0.0.1:{b.controller_port}" for b in spec.brokers),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": clients,
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
        # The cleaner looks for work every half second, not every 15 s: on a local cluster someone waits for it.
        "log.cleaner.backoff.ms": "500",
        # A killed broker may register again only when its old session has run out: 3 s to wait, not 9.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(64 * 1024 * 1024),
    }


# Its paths are relative to the broker's folder, where the broker runs: so no character of the home's path is special.
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
