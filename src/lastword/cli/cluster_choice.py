"""Which cluster a verb works on: by `--cluster`, `--bootstrap-servers`, `--config`, the environment, or the default."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.cli.options import utf8
from lastword.core.errors import BadInput, ClusterUnreachable, NotFound
from lastword.core.home import default_home

if TYPE_CHECKING:
    from lastword.kafka.client.connection import Connection

DEFAULT_CLUSTER = "default"
NO_LOCAL_CLUSTER = (
    "no local cluster is running: start one with  lastword broker start  (or everything with  lastword up), "
    "or choose a cluster with --cluster or --bootstrap-servers"
)


def connection(args: argparse.Namespace) -> Connection:
    """The cluster that the options choose; first puts back settings that a killed command left changed there."""
    from lastword.cli.output import note
    from lastword.kafka.compaction.journal import restore_left_behind

    chosen = _named_connection(args)
    restore_left_behind(chosen, default_home(), note)
    return chosen


def _named_connection(args: argparse.Namespace) -> Connection:
    """Options first, then the environment, then the settings file, then the local cluster `default`."""
    from lastword.kafka.client.connection import Connection

    if args.cluster is not None and args.bootstrap_servers is not None:
        raise BadInput("--cluster and --bootstrap-servers choose two clusters: use only one of these options")
    servers = _given("--bootstrap-servers", args.bootstrap_servers)
    config = _given("--config", args.config)
    if args.cluster is None:
        # --cluster ignores the environment: its login would be for another cluster.
        servers = servers or _given("LASTWORD_BOOTSTRAP_SERVERS", os.environ.get("LASTWORD_BOOTSTRAP_SERVERS"))
        config = config or _given("LASTWORD_CONFIG", os.environ.get("LASTWORD_CONFIG"))
    properties = read_properties(Path(config)) if config else {}
    in_file = _given(f"bootstrap.servers in {config}", properties.pop("bootstrap.servers", None))
    if args.cluster is None and (address := servers or in_file):
        utf8(address)
        return Connection(bootstrap_servers=address, properties=properties)
    local = _local_connection(args.cluster)
    if in_file not in (None, local.bootstrap_servers):
        raise BadInput(
            f"bootstrap.servers in {config} is {in_file}, but cluster {args.cluster} is at {local.bootstrap_servers}: "
            "use only one of --cluster and --config, or remove bootstrap.servers from the file"
        )
    # Without a login in the settings the user is the administrator of the local cluster.
    return replace(local, properties={**local.properties, **properties})


def _given(source: str, text: str | None) -> str | None:
    """The text, if there is one; BadInput if it is empty, because the command would then use another cluster."""
    if text is not None and not text.strip(", "):
        raise BadInput(f"{source} is empty: set it, or leave it out to use the local cluster")
    return text


def read_properties(path: Path) -> dict[str, str]:
    """Client settings from a file of `name=value` lines; `#` starts a comment."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not UTF-8 text"
        raise BadInput(f"client settings {path}: {reason}: check --config or LASTWORD_CONFIG") from None
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            # The line itself is not shown: it may hold a password.
            raise BadInput(f"{path}:{number}: this line is not name=value: write one client setting on each line")
        properties[name.strip()] = value.strip()
    return properties


def _local_connection(name: str | None) -> Connection:
    """A connection to the local cluster `name`, or to the default one, as its administrator."""
    from lastword.core.nearest import did_you_mean
    from lastword.kafka.broker.cluster_files import check_cluster_name, clusters_folder, load_spec, node_files
    from lastword.kafka.broker.readiness import connection_to
    from lastword.processes.process_lock import is_running

    check_cluster_name(name or DEFAULT_CLUSTER)
    clusters = clusters_folder(default_home())
    folder = clusters / (name or DEFAULT_CLUSTER)
    spec = load_spec(folder)
    if spec is not None and any(is_running(node_files(folder, broker)) for broker in spec.brokers):
        return connection_to(folder, spec)
    if name is None:
        raise ClusterUnreachable(NO_LOCAL_CLUSTER)
    start = f"lastword broker start --cluster {name}"
    if spec is None:
        hint = did_you_mean(name, [each.name for each in clusters.glob("*")]) or f"create it with  {start}"
        raise NotFound(f"there is no cluster {name}: {hint}")
    raise ClusterUnreachable(f"cluster {name} is not running: start it with  {start}")
