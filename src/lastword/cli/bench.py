"""The verb `bench`: benchmarks side by side with the alternative."""

from __future__ import annotations

import argparse
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import note, print_json, print_table, styled
from lastword.cli.progress_line import ProgressLine
from lastword.core.home import default_home, default_jars

if TYPE_CHECKING:
    from lastword.bench.figures import Result

# The records and rounds of each, unless told otherwise.
_DEFAULTS = {
    "load": (1_000_000, 5),
    "read": (1_000_000, 5),
    "start": (1_000_000, 5),
    "replica": (5_000_000, 3),
    "http": (500_000, 5),
    "fold": (5_000_000, 3),
    "pipeline": (1_000_000, 3),
}


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Measures lastword beside the alternative, in turns, on a local cluster of its own that is gone afterwards. "
        "Exit code 1 if a target is missed.",
        "lastword bench load\nlastword bench read --records 100000 --rounds 5 --json\n"
        "lastword bench all --write docs/benchmarks.md",
        bench,
    )
    made.add_argument(
        "name",
        choices=[*_DEFAULTS, "all"],
        help="load: against a bare produce loop; read: dump against a bare consume loop; "
        "start: --help against python -c pass, and the broker; replica: a rebuild against a bare consume loop, "
        "a WriteBatch loop, Kafka Streams, kafka-python and Quix Streams, then restart and latency; http: point reads "
        "against FastAPI and nginx (asked by wrk), reads while records are applied, freshness and change streams; "
        "fold: in Spark, from Kafka and Parquet, against groupBy + max_by, a row_number window, max(struct), "
        "Delta MERGE and DuckDB; pipeline: fifteen rules over generated users, against plain loops with kafka-python "
        "and confluent-kafka and Spark's own sink, then latency and recovery",
    )
    made.add_argument(
        "--records", type=options.count_argument, help="default 1000000; of replica and fold 5000000, of http 500000"
    )
    made.add_argument(
        "--rounds", type=options.count_argument, help="medians over so many; default 5; of replica, fold and pipeline 3"
    )
    made.add_argument("--write", type=Path, metavar="FILE", help="put the results into this Markdown file")
    made.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="measure on this cluster (default: one made for it)"
    )
    options.add_json(made)
    return made


def bench(args: argparse.Namespace) -> int:
    from lastword.bench.fold import bench_fold
    from lastword.bench.http import bench_http
    from lastword.bench.load import bench_load
    from lastword.bench.machine import machine_facts
    from lastword.bench.page import write_section
    from lastword.bench.pipeline import bench_pipeline
    from lastword.bench.read import bench_read
    from lastword.bench.replica import bench_replica
    from lastword.bench.rounds import Plan
    from lastword.bench.start import bench_start

    for number in (signal.SIGTERM, signal.SIGHUP):
        # As on Ctrl-C, what was started is ended and what was made is removed.
        signal.signal(number, signal.default_int_handler)
    progress = ProgressLine()
    benches = {
        "load": bench_load,
        "read": bench_read,
        "start": bench_start,
        "replica": bench_replica,
        "http": bench_http,
        "fold": bench_fold,
        "pipeline": bench_pipeline,
    }
    met = True
    for name in _DEFAULTS if args.name == "all" else (args.name,):
        records, rounds = _DEFAULTS[name]
        plan = Plan(
            records=records if args.records is None else args.records,
            rounds=rounds if args.rounds is None else args.rounds,
            home=default_home(),
            jars=default_jars(default_home()),
            tell=progress.step,
            bootstrap_servers=args.bootstrap_servers,
        )
        result = benches[name](plan)
        progress.clear()
        if args.json:
            print_json(result.as_json())
        else:
            _print_result(result)
        if args.write:
            facts = machine_facts(local_broker=name == "start" or not args.bootstrap_servers)
            write_section(args.write, result, facts, datetime.now(UTC).strftime("%Y-%m-%d"))
            note(f"wrote the section {name} of {args.write}")
        met = met and result.is_met
    return 0 if met else 1


def _print_result(result: Result) -> None:
    print(styled(f"{result.title}  ({result.command})", "bold"))
    print_table(
        ["MEASURED", "MEDIAN", "LOWEST", "HIGHEST", "UNIT", "ROUNDS"],
        [
            [f.what, f.shown(f.median), f.shown(min(f.rounds)), f.shown(max(f.rounds)), f.unit, len(f.rounds)]
            for f in result.figures
        ],
    )
    for ratio in result.ratios:
        text = f"ratio {ratio.value:.2f} ({ratio.what}; {ratio.spread} in single rounds), target {ratio.verdict}"
        print(styled(text, "green" if ratio.is_met else "red"))
    for limit in result.limits:
        figure = limit.figure
        text = f"{figure.what} {figure.shown(figure.median)} {figure.unit}, target {limit.verdict}"
        print(styled(text, "green" if limit.is_met else "red"))
    for reason in result.left_out:
        print(f"left out: {reason}")
    print()
