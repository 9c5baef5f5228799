"""The verb `demo`: scenarios that play themselves, and generated users."""

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
    made = options.verb_parser(
        verb,
        "Scenarios that play themselves, and generated users for the pipeline.",
        "lastword demo profiles\nlastword demo users --rate 500",
    )
    subs = made.add_subparsers(required=True, metavar="NAME")
    profiles_ = options.sub_parser(
        subs,
        "profiles",
        "a user-profile store, step by step, on its own topic, which it makes anew; "
        "starts a local cluster if none runs, and stops it",
        "lastword demo profiles",
        profiles,
    )
    _add_users(subs)
    options.add_connection(profiles_)
    return made


def _add_users(subs: options.Subs[argparse.ArgumentParser]) -> None:
    users_ = options.sub_parser(
        subs,
        "users",
        "write generated users to a topic, after those that are there, until Ctrl-C",
        "lastword demo users --rate 500\nlastword demo users --count 1000000\n"
        "lastword demo users --rate 20 --count 100 --seed 7 --topic my_users",
        users,
    )
    count = options.count_argument
    users_.add_argument("--rate", type=count, metavar="N", help="users a second (default: as fast as possible)")
    users_.add_argument("--count", type=count, metavar="N", help="end after so many (default: at Ctrl-C or SIGTERM)")
    users_.add_argument("--seed", type=count, default=0, metavar="N", help="other users for each seed; default 0")
    users_.add_argument(
        "--topic",
        default="new_users",
        help="default new_users; made with 5 partitions and 1 h of retention if it is not there",
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
        started, connection = _cluster_of_its_own()
    try:
        ProfilesDemo(connection=connection, home=default_home(), say=partial(_say, iter(range(1, 100)))).play()
    finally:
        if started is not None:
            started.close()
            print("cluster stopped: nothing is left running")
    return 0


def users(args: argparse.Namespace) -> int:
    from lastword.teams.users.user_topic import write_users

    connection = cluster_choice.connection(args)
    ended: list[int] = []

    def end(number: int, _frame: object) -> None:
        ended.append(number)
        # Once more, and it does not wait for what is not acknowledged yet.
        signal.signal(number, signal.default_int_handler)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    progress = ProgressLine("users")
    written = write_users(
        connection,
        topic=args.topic,
        seed=args.seed,
        count=args.count,
        per_second=args.rate,
        stopped=lambda: bool(ended),
        progress=lambda done: progress.count(done, args.count),
    )
    progress.clear()
    which = f" ({written.first} to {written.first + written.users - 1} of seed {args.seed})" if written.users else ""
    print(f"{written.users} users written to {args.topic}{which}, {written.users / written.seconds:,.0f} a second")
    return 0


def _cluster_of_its_own() -> tuple[LocalCluster, Connection]:
    """A fresh cluster on a free port: the play needs none of the user's, and leaves nothing behind."""
    from lastword.kafka.broker.local_cluster import LocalCluster

    progress = ProgressLine()
    cluster = LocalCluster.fresh(default_jars(default_home()), "demo", tell=progress.line)
    try:
        began = cluster.start(port=0)
    except BaseException:
        cluster.close()
        raise
    progress.clear()
    print(f"cluster ready after {began.seconds:.1f} s at {began.bootstrap_servers}")
    return cluster, cluster.connection


def _say(numbers: object, title: str, command: str, seen: str) -> None:
    number = next(numbers)  # type: ignore[call-overload]
    print(f"{styled(f'{number:>2}. {title}', 'bold')}")
    print(f"    $ {command}")
    print(f"    {styled(seen, 'green')}\n", flush=True)
