"""The verbs `up`, `down` and `status`: the local cluster and everything that runs on it, as one thing."""

from __future__ import annotations

import argparse
import signal
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.local import this_machine
from lastword.cli.local.bring_up import Everything, tell_start
from lastword.cli.local.try_commands import ON_THE_CLUSTER, print_try
from lastword.cli.local.up_status import status
from lastword.cli.output import note
from lastword.cli.progress_line import ProgressLine
from lastword.core.errors import BadInput, BrokerFailed
from lastword.demo.people import TABLE

if TYPE_CHECKING:
    from lastword.kafka.broker.cluster_start import Started
    from lastword.kafka.broker.local_cluster import LocalCluster


def parser(verb: str) -> argparse.ArgumentParser:
    if verb == "up":
        return _up_parser()
    if verb == "down":
        return options.verb_parser(
            verb,
            "Stops what `up` started: the pipeline after its commit, the cluster last. A cluster that ran before keeps "
            "running. The data is kept.",
            "lastword down",
            down,
        )
    made = options.verb_parser(
        verb,
        "Every part: whether it runs, since when, how often it was restarted and why, and its log. Exit code 3 if the "
        "cluster does not run, 1 if another part does not.",
        "lastword status",
        status,
    )
    options.add_json(made)
    return made


def _up_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "up",
        f"Runs everything: the local cluster with the table {TABLE}, generated users, the pipeline of the fifteen "
        "teams on Spark, and HTTP over their tables. A part that dies is restarted. Runs until Ctrl-C, which stops "
        "everything.",
        "lastword up --detach\nlastword status\nlastword up --cluster-only",
        up,
    )
    count = options.count_argument
    made.add_argument("--detach", action="store_true", help="return when ready; `lastword down` stops everything")
    made.add_argument("--cluster-only", action="store_true", help=f"only the cluster with {TABLE}, as without pyspark")
    made.add_argument("--port", type=count, metavar="P", help="Kafka's; default 9092; 0: a free one")
    made.add_argument(
        "--http-port", type=count, metavar="P", help="default 8090, or the port of the last run; 0: a free one"
    )
    made.add_argument(
        "--secure",
        action="store_true",
        help="a cluster that asks for passwords and checks rights, and HTTP that asks for a token (set once)",
    )
    made.add_argument("--tls", action="store_true", help="with --secure: Kafka over TLS, with certificates made for it")
    made.add_argument("--rate", type=count, metavar="N", help="generated users a second (default 50)")
    made.add_argument(
        "--from",
        dest="begin",
        choices=["earliest", "latest"],
        help="where the pipeline begins if it can't continue: see  lastword run --help",
    )
    return made


def up(args: argparse.Namespace) -> int:
    if args.cluster_only and (args.http_port, args.rate, args.begin) != (None, None, None):
        raise BadInput("--http-port, --rate and --from have no effect with --cluster-only: leave out one or the other")
    if not args.cluster_only and find_spec("pyspark") is None:
        note("pyspark is not installed, so only the cluster is started: pip install 'lastword[spark]'  for the rest")
        args.cluster_only = True
    if not args.detach:
        # These signals end `up` as Ctrl-C does: the parts that it started must be stopped in order.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
    return _cluster_alone(args) if args.cluster_only else Everything().up(args)


def down(_args: argparse.Namespace) -> int:
    Everything().end()
    return 0


def _cluster_alone(args: argparse.Namespace) -> int:
    cluster = this_machine.local_cluster(cluster_choice.DEFAULT_CLUSTER, ProgressLine().line, owned=not args.detach)
    upkeep = this_machine.upkeep(ProgressLine())
    with upkeep.turn():
        upkeep.claim_cluster(cluster)
    if args.detach:
        _make_ready(cluster, args)
        return 0
    with cluster:
        began = _make_ready(cluster, args)
        if not began.started:
            stop = "lastword down" if upkeep.wanted.ends_cluster else "lastword broker stop"
            print(f"\nThe cluster was running already and keeps running; stop it with  {stop}")
            return 0
        try:
            print("\nCtrl-C stops it.", flush=True)
            _attend(cluster)
        except KeyboardInterrupt:
            print("stopping", flush=True)
        return 0


def _make_ready(cluster: LocalCluster, args: argparse.Namespace) -> Started:
    from lastword.demo.demo_topics import fill_profiles

    began = cluster.start(port=args.port, security=this_machine.security(args))
    ProgressLine().clear()
    tell_start(began)
    rows = fill_profiles(cluster.connection)
    print(f"ready: table {TABLE} with {rows} rows at {began.bootstrap_servers}")
    print_try(ON_THE_CLUSTER)
    return began


def _attend(cluster: LocalCluster) -> None:
    """Returns when another command stopped the cluster; BrokerFailed when a broker ended by itself."""
    while all(broker.pid for broker in cluster.status()):
        time.sleep(0.5)
    for broker in cluster.status():
        if broker.pid is None and not broker.stopped_cleanly:
            raise BrokerFailed(
                f"broker {broker.node_id} ended unexpectedly: run  lastword up  again to recover, and see {broker.log}"
            )
    print("stopped by another command", flush=True)
