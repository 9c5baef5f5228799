"""The verb `demo`: a scenario step by step, and generated users."""

from __future__ import annotations

import argparse
import signal
from functools import partial
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.output import styled
from lastword.cli.progress_line import ProgressLine
from lastword.core.errors import ClusterUnreachable
from lastword.core.home import default_home, default_jars

if TYPE_CHECKING:
    from lastword.kafka.broker.local_cluster import LocalCluster
    from lastword.kafka.client.connection import Connection


def parser(verb: str) -> argparse.ArgumentParser:
    parser = options.verb_parser(
        verb,
        "Plays a scenario step by step, or writes generated users for the pipeline.",
        "lastword demo profiles\nlastword demo users --rate 500",
    )
    subs = parser.add_subparsers(required=True, metavar="NAME")
    profiles_ = options.sub_parser(
        subs,
        "profiles",
        "play a user-profile store step by step, on its own topic, which is deleted and created again; "
        "without a running local cluster the demo starts one, and stops it at the end",
        "lastword demo profiles",
        profiles,
    )
    _add_users(subs)
    options.add_connection(profiles_)
    return parser


def _add_users(subs: options.Subs[argparse.ArgumentParser]) -> None:
    users_ = options.sub_parser(
        subs,
        "users",
        "write generated users to a topic until Ctrl-C; a second run continues after the last user",
        "lastword demo users --rate 500\nlastword demo users --count 1000000\n"
        "lastword demo users --rate 20 --count 100 --seed 7 --topic my_users",
        users,
    )
    count = options.count_argument
    users_.add_argument("--rate", type=count, metavar="N", help="users per second (default: as fast as possible)")
    users_.add_argument(
        "--count", type=count, metavar="N", help="stop after this many users (default: at Ctrl-C or SIGTERM)"
    )
    users_.add_argument(
        "--seed",
        type=count,
        default=0,
        metavar="N",
        help="seed of the generator; each seed gives other users (default 0)",
    )
    users_.add_argument(
        "--topic",
        default="new_users",
        help="topic to write to (default new_users); created with 5 partitions and 1 h of retention if it is missing",
    )
    options.add_connection(users_)


def profiles(args: argparse.Namespace) -> int:
    from lastword.demo.profiles import ProfilesDemo

    started = None
    try:
        connection = cluster_choice.connection(args)
    except ClusterUnreachable:
        if args.bootstrap_servers or args.cluster or args.config:
            raise
        started, connection = _temporary_cluster()
    try:
        ProfilesDemo(
            connection=connection, home=default_home(), report=partial(_print_step, iter(range(1, 100)))
        ).play()
    finally:
        if started is not None:
            started.close()
            print("cluster stopped; nothing is left running")
    return 0


def users(args: argparse.Namespace) -> int:
    from lastword.teams.users.user_topic import write_users

    connection = cluster_choice.connection(args)
    signals: list[int] = []

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        # A second signal does not wait for outstanding acknowledgements.
        signal.signal(number, signal.default_int_handler)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    progress = ProgressLine("users")
    written = write_users(
        connection,
        topic=args.topic,
        seed=args.seed,
        count=args.count,
        per_second=args.rate,
        stopped=lambda: bool(signals),
        progress=lambda done: progress.count(done, args.count),
    )
    progress.clear()
    which = f" ({written.first} to {written.first + written.users - 1} of seed {args.seed})" if written.users else ""
    print(f"{written.users} users written to {args.topic}{which}, {written.users / written.seconds:,.0f} a second")
    return 0


def _temporary_cluster() -> tuple[LocalCluster, Connection]:
    """A fresh cluster on a free port, which leaves nothing behind."""
    from lastword.kafka.broker.local_cluster import LocalCluster

    progress = ProgressLine()
    cluster = LocalCluster.fresh(default_jars(default_home()), "demo", report=progress.line)
    try:
        start = cluster.start(port=0)
    except BaseException:
        cluster.close()
        raise
    progress.clear()
    print(f"cluster ready after {start.seconds:.1f} s at {start.bootstrap_servers}")
    return cluster, cluster.connection


def _print_step(numbers: object, title: str, command: str, result: str) -> None:
    number = next(numbers)  # type: ignore[call-overload]
    print(f"{styled(f'{number:>2}. {title}', 'bold')}")
    print(f"    $ {command}")
    print(f"    {styled(result, 'green')}\n", flush=True)
