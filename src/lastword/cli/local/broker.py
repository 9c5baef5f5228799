"""The verb `broker`: the local Kafka cluster."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from lastword.cli import cluster_choice, options
from lastword.cli.json_lines import BrokerLine, BrokerStartLine
from lastword.cli.local import this_machine
from lastword.cli.local.broker_users import add_user_actions
from lastword.cli.output import note, print_json, print_table
from lastword.cli.progress_line import ProgressLine
from lastword.core.errors import BadInput, LastwordError, NotFound


def parser(verb: str) -> argparse.ArgumentParser:
    parser = options.verb_parser(
        verb,
        "Runs an Apache Kafka cluster on this machine. Its files are in the home, and it listens on loopback only.",
        "lastword broker start\nlastword broker start --cluster three --brokers 3 --port 19092",
    )
    subs = parser.add_subparsers(required=True, metavar="ACTION")
    start_ = options.sub_parser(
        subs,
        "start",
        "start the brokers that are not running, and return when all are registered",
        "lastword broker start --port 0 --set log.cleaner.threads=2",
        start,
    )
    start_.add_argument(
        "--brokers",
        type=options.count_argument,
        metavar="N",
        help="number of brokers (default 1); it can't change later",
    )
    start_.add_argument(
        "--port",
        type=options.count_argument,
        metavar="P",
        help="port of the first broker (default 9092; 0 chooses free ports)",
    )
    start_.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a broker setting, also for later starts; KEY= returns it to its default; may be repeated",
    )
    start_.add_argument(
        "--secure",
        action="store_true",
        help="require a password (SCRAM-SHA-256) and rights; lastword is the administrator; it can't change later",
    )
    start_.add_argument(
        "--tls", action="store_true", help="with --secure: use TLS, with certificates made for this cluster"
    )
    options.sub_parser(subs, "stop", "stop the cluster; its topics are kept", "lastword broker stop", stop)
    status_ = options.sub_parser(
        subs,
        "status",
        "show each broker with its address and log; exit code 1 if a broker is not running",
        "lastword broker status",
        status,
    )
    options.add_json(start_)
    options.add_json(status_)
    logs_ = options.sub_parser(
        subs, "logs", "print the last lines of each broker's log", "lastword broker logs --lines 50", logs
    )
    logs_.add_argument(
        "--lines", type=options.count_argument, default=20, metavar="N", help="number of lines (default 20)"
    )
    options.sub_parser(
        subs,
        "fetch",
        "download and verify the jars of the broker and of Spark's connector, and prepare Spark for fast starts",
        "lastword broker fetch",
        fetch,
    )
    for sub in subs.choices.values():
        sub.add_argument(
            "--cluster",
            default=cluster_choice.DEFAULT_CLUSTER,
            metavar="NAME",
            help="name of the cluster (default: default)",
        )
    add_user_actions(subs)
    return parser


def start(args: argparse.Namespace) -> int:
    progress = ProgressLine()
    cluster = this_machine.local_cluster(args.cluster, progress.line)
    settings, security = options.settings(args.set), this_machine.security(args)
    started = cluster.start(brokers=args.brokers, port=args.port, settings=settings, security=security)
    progress.clear()
    if args.cluster == cluster_choice.DEFAULT_CLUSTER and len(started.started) == len(cluster.status()):
        _keep_from_down(progress)
    for warning in started.warnings:
        note(warning)
    config = cluster.client_file
    if args.json:
        print_json(
            BrokerStartLine(
                bootstrap_servers=started.bootstrap_servers,
                started=started.started,
                recovered=started.recovered,
                cut_off=started.cut_off,
                config=None if config is None else str(config),
            )
        )
        return 0
    if started.recovery is not None:
        print(started.recovery)
    how = f"ready after {started.seconds:.1f} s" if started.started else "was running already and is ready"
    print(f"cluster {args.cluster}: {how} at {started.bootstrap_servers}")
    if config is not None:
        print(f"the cluster asks for a password; log in as its administrator with  --config {config}")
    return 0


def _keep_from_down(progress: ProgressLine) -> None:
    """`down` stops only what `up` started: it leaves this cluster alone, unless `up` is running."""
    upkeep = this_machine.upkeep(progress)
    if not upkeep.is_supervised:
        upkeep.disclaim_cluster()


def fetch(_args: argparse.Namespace) -> int:
    from lastword.core.home import default_home, default_jars
    from lastword.jvm.jars import broker_jar_lock, ensure_jars, spark_jar_lock
    from lastword.jvm.java import find_java
    from lastword.kafka.broker.broker_process import Jvm
    from lastword.kafka.broker.first_start import take_first_broker_start

    progress = ProgressLine()
    java, cache = find_java(), default_jars(default_home())
    broker, spark = (ensure_jars(lock, cache, java, progress.line) for lock in (broker_jar_lock(), spark_jar_lock()))
    take_first_broker_start(Jvm(java=java, jars=broker), cache, progress.line)
    if all(find_spec(name) is not None for name in ("pyspark", "pyarrow", "pandas")):
        from lastword.spark.first_start import take_first_start

        try:
            take_first_start(java, cache, spark, progress.line)
        except LastwordError as failure:
            # Kafka works without Spark.
            progress.clear()
            note(f"{failure}; everything except Spark is ready")
    progress.clear()
    counts = f"{len(broker)} jars of the broker and {len(spark)} of Spark's connector"
    print(f"{counts} in {cache}, for Java {java.version} from {java.origin}")
    return 0


def stop(args: argparse.Namespace) -> int:
    progress = ProgressLine()
    if args.cluster == cluster_choice.DEFAULT_CLUSTER and this_machine.upkeep(progress).is_running:
        raise BadInput("lastword up  keeps cluster default running: stop it with  lastword down")
    stopped = this_machine.local_cluster(args.cluster, progress.line).stop()
    print(f"cluster {args.cluster}: {f'{len(stopped)} broker(s) stopped' if stopped else 'was not running'}")
    return 0


def status(args: argparse.Namespace) -> int:
    brokers = this_machine.local_cluster(args.cluster, print).status()
    if not brokers:
        raise NotFound(
            f"there is no cluster {args.cluster}: create it with  lastword broker start --cluster {args.cluster}"
        )
    if args.json:
        for broker in brokers:
            print_json(BrokerLine(broker.node_id, broker.port, broker.pid, str(broker.log)))
    else:
        print_table(
            ["BROKER", "STATE", "ADDRESS", "PID", "LOG"],
            [
                [b.node_id, "running" if b.pid else "stopped", f"127.0.0.1:{b.port}", b.pid or "-", b.log]
                for b in brokers
            ],
        )
    return 0 if all(broker.pid for broker in brokers) else 1


def logs(args: argparse.Namespace) -> int:
    from lastword.kafka.broker.cluster_files import NodeFiles

    brokers = this_machine.local_cluster(args.cluster, print).status()
    if not brokers:
        raise NotFound(
            f"there is no cluster {args.cluster}: create it with  lastword broker start --cluster {args.cluster}"
        )
    for broker in brokers:
        print(f"== broker {broker.node_id}: {broker.log}")
        sys.stdout.writelines(line + "\n" for line in NodeFiles(folder=broker.log.parent).log_tail(args.lines))
    return 0
