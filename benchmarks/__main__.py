"""The command `python -m benchmarks NAME`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks.measuring.figures import Result
from benchmarks.measuring.machine import machine_facts
from benchmarks.measuring.page import write_section
from benchmarks.measuring.plan import Plan
from lastword.cli import exit_code_of, options
from lastword.cli.output import note, print_json, print_table, styled
from lastword.cli.progress_line import ProgressLine
from lastword.core.home import default_home, default_jars

# name -> (module, records, rounds). Records and rounds are the defaults of the options.
BENCHMARKS = {
    "load": ("commands.load", 1_000_000, 5),
    "read": ("commands.read", 1_000_000, 5),
    "start": ("commands.start", 1_000_000, 5),
    "replica": ("replica.benchmark", 5_000_000, 3),
    "http": ("http.benchmark", 500_000, 5),
    "fold": ("fold.benchmark", 5_000_000, 3),
    "pipeline": ("pipeline.benchmark", 1_000_000, 3),
}

_EXAMPLE = """\
example:
  python -m benchmarks load
  python -m benchmarks read --records 100000 --rounds 5 --json
  python -m benchmarks all --write docs/benchmarks.md"""


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(
        prog="python -m benchmarks",
        description="Measures lastword beside the alternative, in turns, on a local cluster that is made for the "
        "benchmark and removed at its end. Exit code 1 if a target is missed.",
        epilog=_EXAMPLE,
        formatter_class=options.Formatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "name",
        choices=[*BENCHMARKS, "all"],
        help="load: against a bare produce loop; read: dump against a bare consume loop; "
        "start: --help against python -c pass, and the broker; replica: a rebuild against a bare consume loop, "
        "a WriteBatch loop, Kafka Streams, kafka-python and Quix Streams, then restart and latency; http: point reads "
        "against FastAPI and nginx (asked by wrk), reads while records are applied, freshness and change streams; "
        "fold: in Spark, from Kafka and Parquet, against groupBy + max_by, a row_number window, max(struct), "
        "Delta MERGE and DuckDB; pipeline: fifteen rules over generated users, against plain loops with kafka-python "
        "and confluent-kafka and Spark's own sink, then latency and recovery",
    )
    parser.add_argument(
        "--records", type=options.count_argument, help="default 1000000; of replica and fold 5000000, of http 500000"
    )
    parser.add_argument(
        "--rounds",
        type=options.count_argument,
        help="how many rounds the medians are over; default 5; of replica, fold and pipeline 3",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the results into this Markdown file")
    parser.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="measure on this cluster (default: one made for it)"
    )
    options.add_json(parser)
    return parser


def main(words: Sequence[str]) -> int:
    args = parser().parse_args(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As on Ctrl-C: started processes are ended, and files are removed.
        signal.signal(number, signal.default_int_handler)
    results = [measured(name, args) for name in (BENCHMARKS if args.name == "all" else (args.name,))]
    return 0 if all(result.is_met for result in results) else 1


def measured(name: str, args: argparse.Namespace) -> Result:
    """Runs one benchmark, prints its result, and writes it to the page of `--write`."""
    module, records, rounds = BENCHMARKS[name]
    progress = ProgressLine()
    plan = Plan(
        records=records if args.records is None else args.records,
        rounds=rounds if args.rounds is None else args.rounds,
        home=default_home(),
        jars=default_jars(default_home()),
        report=progress.step,
        bootstrap_servers=args.bootstrap_servers,
    )
    # Only the module of this benchmark is imported.
    bench: Callable[[Plan], Result] = getattr(import_module(f"benchmarks.{module}"), f"bench_{name}")
    result = bench(plan)
    progress.clear()
    if args.json:
        print_json(result.as_json())
    else:
        _print_result(result)
    if args.write:
        facts = machine_facts(local_broker=name == "start" or not args.bootstrap_servers)
        write_section(args.write, result, facts, datetime.now(UTC).strftime("%Y-%m-%d"))
        note(f"wrote the section {name} of {args.write}")
    return result


def _print_result(result: Result) -> None:
    print(styled(f"{result.title}  ({result.command})", "bold"))
    print_table(
        ["MEASURED", "MEDIAN", "LOWEST", "HIGHEST", "UNIT", "ROUNDS"],
        [
            [f.what, f.text(f.median), f.text(min(f.rounds)), f.text(max(f.rounds)), f.unit, len(f.rounds)]
            for f in result.figures
        ],
    )
    for ratio in result.ratios:
        text = f"ratio {ratio.value:.2f} ({ratio.what}; {ratio.spread} in single rounds), target {ratio.verdict}"
        print(styled(text, "green" if ratio.is_met else "red"))
    for limit in result.limits:
        figure = limit.figure
        text = f"{figure.what} {figure.text(figure.median)} {figure.unit}, target {limit.verdict}"
        print(styled(text, "green" if limit.is_met else "red"))
    for reason in result.left_out:
        print(f"left out: {reason}")
    print()


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: main(sys.argv[1:])))
