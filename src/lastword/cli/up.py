"""The verbs `up`, `down` and `status`: the local cluster with a table in it, as one thing."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import Progress, print_json, print_table
from lastword.core.errors import BrokerFailed, ClusterUnreachable

if TYPE_CHECKING:
    from lastword.kafka.local import LocalCluster, Started

TABLE = "user-profiles"

_TRY = {
    f"lastword scan {TABLE}": "the table: one row per key",
    f'lastword put {TABLE} user-1 \'{{"name": "Ada"}}\'': "write a row",
    f"lastword get {TABLE} user-1": "its newest value",
    f"lastword records {TABLE}": "the raw log behind the table",
    f"lastword topic compact {TABLE}": "make Kafka compact it now",
    "lastword demo profiles": "the whole story, step by step",
    "lastword down": "stop; the data is kept",
}


def parser(verb: str) -> argparse.ArgumentParser:
    if verb == "up":
        made = options.verb_parser(
            verb,
            f"Starts the local cluster and puts the demo's table {TABLE} in it. Runs until Ctrl-C, then stops it all.",
            "lastword up --detach\nlastword scan user-profiles",
            up,
        )
        made.add_argument("--detach", action="store_true", help="return when ready; `lastword down` stops it")
        made.add_argument("--port", type=options.count_argument, metavar="P", help="default 9092; 0: a free one")
        return made
    if verb == "down":
        return options.verb_parser(verb, "Stops what `up` started. The data is kept.", "lastword down", down)
    made = options.verb_parser(verb, "What runs; exit code 3 if the cluster does not.", "lastword status", status)
    options.add_json(made)
    return made


def up(args: argparse.Namespace) -> int:
    cluster = options.local_cluster("default", Progress().line, owned=not args.detach)
    if args.detach:
        _make_ready(cluster, args.port)
        return 0
    # Like Ctrl-C, at any moment: the cluster is ours and must be stopped in order.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with cluster:
        began = _make_ready(cluster, args.port)
        if not began.started:
            print("\nThe cluster was running already and goes on running; stop it with  lastword down")
            return 0
        try:
            print("\nCtrl-C stops it.", flush=True)
            _attend(cluster)
        except KeyboardInterrupt:
            print("stopping", flush=True)
        return 0


def down(_args: argparse.Namespace) -> int:
    stopped = options.local_cluster("default", Progress().line).stop()
    print(f"{len(stopped)} broker(s) stopped" if stopped else "nothing was running")
    return 0


def status(args: argparse.Namespace) -> int:
    brokers = options.local_cluster("default", print).status()
    rows = [("broker", b.node_id, "running" if b.pid else "stopped", f"127.0.0.1:{b.port}", b.pid) for b in brokers]
    if args.json:
        for part, number, state, address, pid in rows:
            print_json({"part": part, "id": number, "state": state, "address": address, "pid": pid})
    elif rows:
        print_table(
            ["PART", "ID", "STATE", "ADDRESS", "PID"],
            [[part, number, state, address, pid or "-"] for part, number, state, address, pid in rows],
        )
    if not any(broker.pid for broker in brokers):
        raise ClusterUnreachable(options.NO_LOCAL_CLUSTER)
    return 0 if all(broker.pid for broker in brokers) else 1


def _make_ready(cluster: LocalCluster, port: int | None) -> Started:
    began = cluster.start(port=port)
    Progress().clear()
    _tell_start(began)
    rows = _load_table(began.bootstrap_servers)
    print(f"ready: table {TABLE} with {rows} rows at {began.bootstrap_servers}\n\nTry:")
    # Before the environment is activated, the command is found only by its path.
    name = "lastword" if shutil.which("lastword") else os.path.relpath(sys.argv[0])
    lines = {command.replace("lastword", name, 1): meaning for command, meaning in _TRY.items()}
    width = max(map(len, lines))
    for command, meaning in lines.items():
        print(f"  {command:<{width}}  {meaning}", flush=True)
    return began


def _tell_start(began: Started) -> None:
    if began.recovered:
        print("the broker had not been stopped in order: its log was recovered, nothing acknowledged is lost")
    if began.started:
        print(f"Kafka started in {began.seconds:.1f} s", flush=True)


def _load_table(bootstrap_servers: str) -> int:
    """The demo's table, made and filled once: what a user wrote since then stays."""
    from lastword.demo.people import EVERYONE, PARTITIONS, TOPIC_SETTINGS
    from lastword.kafka.connection import Connection
    from lastword.kafka.reading import log_bounds
    from lastword.kafka.topic_description import list_topics
    from lastword.kafka.topics import create_topic
    from lastword.table import Table

    connection = Connection(bootstrap_servers=bootstrap_servers)
    if all(topic.name != TABLE for topic in list_topics(connection)):
        create_topic(connection, TABLE, partitions=PARTITIONS, settings=TOPIC_SETTINGS)
    _, end = log_bounds(connection, TABLE)
    with Table(connection, TABLE) as users:
        # Offsets only grow: fewer than these were ever written only if an earlier `up` was killed while it loaded.
        if sum(end.values()) < len(EVERYONE):
            users.put_many((profile["userId"], profile) for profile in EVERYONE)
        return users.count()


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
