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
    "no local cluster runs: start one with  lastword broker start  "
    "(or everything with  lastword up), or name one with --cluster or --bootstrap-servers"
)


def connection(args: argparse.Namespace) -> Connection:
    """The cluster that the options name, with settings of a killed command put back first."""
    from lastword.cli.output import note
    from lastword.kafka.compaction.journal import restore_left_behind

    chosen = _named_connection(args)
    restore_left_behind(chosen, default_home(), note)
    return chosen


def _named_connection(args: argparse.Namespace) -> Connection:
    """An option beats the environment, and that beats the settings file; else the local cluster `default`."""
    from lastword.kafka.client.connection import Connection

    if args.cluster is not None and args.bootstrap_servers is not None:
        raise BadInput("--cluster and --bootstrap-servers name two clusters: give one of them")
    servers = _given("--bootstrap-servers", args.bootstrap_servers)
    config = _given("--config", args.config)
    if args.cluster is None:
        # With --cluster the environment counts for nothing: its login would be one for another cluster.
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
            f"{config} is for {in_file}, and cluster {args.cluster} is at {local.bootstrap_servers}: give --cluster or "
            "--config, or remove bootstrap.servers from the file"
        )
    # Unless the settings say who asks, it is the administrator of the local cluster.
    return replace(local, properties={**local.properties, **properties})


def _given(source: str, text: str | None) -> str | None:
    """What was given there, None if nothing was; BadInput for an empty text: the command would take another cluster."""
    if text is not None and not text.strip(", "):
        raise BadInput(f"{source} is empty: give it a value, or leave it out for the local cluster")
    return text


def read_properties(path: Path) -> dict[str, str]:
    """Client settings from a file of `name=value` lines; `#` starts a comment."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not UTF-8 text"
        raise BadInput(f"client settings {path}: {reason}: check --config or LASTWORD_CONFIG") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, found, value = text.partition("=")
        if not found or not name.strip():
            # The line itself is not shown: it may hold a password.
            raise BadInput(f"{path}:{number}: not name=value: write one client setting a line")
        settings[name.strip()] = value.strip()
    return settings


def _local_connection(name: str | None) -> Connection:
    """For the administrator of the local cluster of that name, or of the default one."""
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
        hint = did_you_mean(name, [each.name for each in clusters.glob("*")]) or f"make it with  {start}"
        raise NotFound(f"there is no cluster {name}: {hint}")
    raise ClusterUnreachable(f"cluster {name} does not run: start it with  {start}")
