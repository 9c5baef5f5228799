"""The verb `demo`: scenarios that play themselves."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import Progress, styled
from lastword.core.errors import ClusterUnreachable
from lastword.core.home import default_home, default_jars

if TYPE_CHECKING:
    from lastword.kafka.connection import Connection
    from lastword.kafka.local import LocalCluster


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Plays a scenario on its own topics, which it makes anew. Starts a local cluster if none runs, and stops it.",
        "lastword demo profiles",
        play,
    )
    made.add_argument("name", choices=["profiles"], help="profiles: a user-profile store, step by step")
    options.add_connection(made)
    return made


def play(args: argparse.Namespace) -> int:
    from lastword.demo.profiles import ProfilesDemo

    started = None
    try:
        connection = options.connection(args)
    except ClusterUnreachable:
        if args.bootstrap_servers or args.config:
            raise
        started, connection = _cluster_of_its_own()
    try:
        ProfilesDemo(connection=connection, home=default_home(), say=partial(_say, iter(range(1, 100)))).play()
    finally:
        if started is not None:
            started.close()
            print("cluster stopped: nothing is left running")
    return 0


def _cluster_of_its_own() -> tuple[LocalCluster, Connection]:
    """A fresh cluster on a free port: the play needs none of the user's, and leaves nothing behind."""
    from lastword.kafka.connection import Connection
    from lastword.kafka.local import LocalCluster

    progress = Progress()
    cluster = LocalCluster.fresh(default_jars(default_home()), "demo", tell=progress.line)
    try:
        began = cluster.start(port=0)
    except BaseException:
        cluster.close()
        raise
    progress.clear()
    print(f"cluster ready after {began.seconds:.1f} s at {began.bootstrap_servers}")
    return cluster, Connection(bootstrap_servers=began.bootstrap_servers)


def _say(numbers: object, title: str, command: str, seen: str) -> None:
    number = next(numbers)  # type: ignore[call-overload]
    print(f"{styled(f'{number:>2}. {title}', 'bold')}")
    print(f"    $ {command}")
    print(f"    {styled(seen, 'green')}\n", flush=True)
