"""Options that many verbs share, and what they mean: the connection, the codecs, the home."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lastword.core.errors import BadInput, ClusterUnreachable
from lastword.core.home import default_home, default_jars
from lastword.core.position import Position

if TYPE_CHECKING:
    from lastword.cli.output import Progress
    from lastword.kafka.connection import Connection
    from lastword.kafka.local import LocalCluster
    from lastword.kafka.security import Security
    from lastword.up.upkeep import Upkeep

Run = Callable[[argparse.Namespace], int]
Subs = argparse._SubParsersAction  # what add_subparsers gives; argparse has no public name for it

NO_LOCAL_CLUSTER = (
    "no local cluster runs: start one with  lastword broker start  "
    "(or everything with  lastword up), or name one with --bootstrap-servers"
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
    from lastword.kafka.connection import Connection
    from lastword.kafka.journal import restore_left_behind

    path = args.config or os.environ.get("LASTWORD_CONFIG")
    properties = read_properties(Path(path)) if path else {}
    named = properties.pop("bootstrap.servers", None)
    servers = args.bootstrap_servers or os.environ.get("LASTWORD_BOOTSTRAP_SERVERS") or named
    if servers is not None:
        utf8(servers)
        chosen = Connection(bootstrap_servers=servers, properties=properties)
    else:
        # Unless the settings say who asks, it is the administrator of the local cluster.
        chosen = _local_connection()
        chosen = replace(chosen, properties={**chosen.properties, **properties})
    restore_left_behind(chosen, default_home(), note)
    return chosen


def security(args: argparse.Namespace) -> Security | None:
    """What --secure and --tls ask for; None when they are not given."""
    if args.tls and not args.secure:
        raise BadInput("--tls is about a cluster that asks for passwords: give --secure, too")
    return None if not args.secure else "scram-tls" if args.tls else "scram"


def local_cluster(name: str, tell: Callable[[str], None], *, owned: bool = False) -> LocalCluster:
    from lastword.kafka.local import LocalCluster

    home = default_home()
    return LocalCluster.at(home, default_jars(home), name, owned=owned, tell=tell)


def upkeep(progress: Progress) -> Upkeep:
    """What `up` runs on the local cluster."""
    from lastword.up.upkeep import Upkeep

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


def _local_connection() -> Connection:
    """For the administrator of the local cluster."""
    from lastword.kafka.cluster_files import clusters_folder, load_spec, node_files
    from lastword.kafka.liveness import is_running
    from lastword.kafka.readiness import connection_to

    folder = clusters_folder(default_home()) / "default"
    spec = load_spec(folder)
    if spec is None or not any(is_running(node_files(folder, broker)) for broker in spec.brokers):
        raise ClusterUnreachable(NO_LOCAL_CLUSTER)
    return connection_to(folder, spec)
