"""Options that many verbs share, and what they mean: the connection, the codecs, the home."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lastword.core.errors import BadInput, ClusterUnreachable, NotFound
from lastword.core.home import default_home, default_jars
from lastword.core.position import Position

if TYPE_CHECKING:
    from lastword.cli.output import ProgressLine
    from lastword.kafka.broker.local_cluster import LocalCluster
    from lastword.kafka.broker.security import Security
    from lastword.kafka.client.connection import Connection
    from lastword.up.control import Upkeep

Run = Callable[[argparse.Namespace], int]
Subs = argparse._SubParsersAction  # what add_subparsers gives; argparse has no public name for it

DEFAULT_CLUSTER = "default"
NO_LOCAL_CLUSTER = (
    "no local cluster runs: start one with  lastword broker start  "
    "(or everything with  lastword up), or name one with --cluster or --bootstrap-servers"
)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print the whole usage first."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}: see  {self.prog} --help")


def verb_parser(verb: str, summary: str, example: str, run: Run | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"lastword {verb}",
        description=summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def sub_parser(
    subs: Subs[argparse.ArgumentParser], name: str, summary: str, example: str, run: Run
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subs.add_parser(
        name,
        help=summary,
        description=summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    group.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="the cluster (default: the local one)")
    group.add_argument(
        "--cluster", metavar="NAME", help="the local cluster of that name, as its administrator (default: default)"
    )
    group.add_argument(
        "--config", metavar="FILE", help="client settings in librdkafka's names (default: $LASTWORD_CONFIG)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON for programs")


def add_codecs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("codecs")
    choices = "string, json, bytes (base64), int"
    group.add_argument("--key-codec", default="string", metavar="CODEC", help=f"{choices}; default string")
    group.add_argument("--value-codec", default="json", metavar="CODEC", help=f"{choices}; default json")


def utf8(text: str) -> bytes:
    """The text as bytes; BadInput for an argument that is not text at all."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{text!r} is not valid UTF-8 text: check the argument") from None


def settings(given: list[str], *, like: str = "segment.ms=10s") -> dict[str, str]:
    """What `--set KEY=VALUE` was given, by name."""
    pairs: dict[str, str] = {}
    for text in given:
        utf8(text)
        name, found, value = text.partition("=")
        if not found or not name.strip():
            raise BadInput(f"--set {text!r}: write it like {like}")
        pairs[name.strip()] = value.strip()
    return pairs


def position(text: str) -> Position:
    try:
        return Position.parse(text)
    except BadInput as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None


def count_argument(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


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


def security(args: argparse.Namespace) -> Security | None:
    """What --secure and --tls ask for; None when they are not given."""
    if args.tls and not args.secure:
        raise BadInput("--tls is about a cluster that asks for passwords: give --secure, too")
    return None if not args.secure else "scram-tls" if args.tls else "scram"


def local_cluster(name: str, tell: Callable[[str], None], *, owned: bool = False) -> LocalCluster:
    from lastword.kafka.broker.local_cluster import LocalCluster

    home = default_home()
    return LocalCluster.at(home, default_jars(home), name, owned=owned, tell=tell)


def upkeep(progress: ProgressLine) -> Upkeep:
    """What `up` runs on the local cluster."""
    from lastword.up.control import Upkeep

    return Upkeep(folder=default_home() / "up", tell=progress.line, show=progress.step)


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
