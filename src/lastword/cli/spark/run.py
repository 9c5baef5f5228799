"""The verb `run`: runs or checks a pipeline file."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.json_lines import CheckLine, MistakeLine
from lastword.cli.output import note, print_json, print_table
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import counted, printable
from lastword.cli.spark import spark_options
from lastword.core.errors import BadInput, ClusterUnreachable

if TYPE_CHECKING:
    from lastword.core.shapes.pipeline_status import PipelineStatus
    from lastword.kafka.client.connection import Connection
    from lastword.pipeline.plan.mistakes import Mistake
    from lastword.pipeline.plan.plan import Pipeline
    from lastword.pipeline.plan.plan_file import PlanFile

# A local master allows a task no failed attempt unless its name has a number, and an attempt may fail because another
# attempt runs.
_LOCAL_MASTER = "local[*,4]"

_EXAMPLE = """\
lastword run pipelines/teams.toml
lastword run pipelines/teams.toml --from latest
lastword run pipelines/teams.toml --check"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Runs a pipeline: reads its source, writes a record for each match of a rule and keeps its tables of counters, "
        "until Ctrl-C or SIGTERM, which end it after the current commit. After any crash it continues where it was: "
        "nothing is lost and nothing counted twice. A second run takes over from the first. With --check it lists all "
        "mistakes in the file, each with its line (exit code 2, or 3 if only the cluster can't be reached), and runs "
        "nothing.",
        _EXAMPLE,
        run,
    )
    made.add_argument("file", help="a pipeline file (TOML)")
    made.add_argument("--check", action="store_true", help="list the mistakes in the file, and run nothing")
    made.add_argument(
        "--from",
        dest="begin",
        choices=["earliest", "latest"],
        help="where to start in a source that was never read (default: earliest), or that can't be continued because "
        "its records expired or it was created again",
    )
    options.add_json(made)
    spark_options.add_spark(made, master=_LOCAL_MASTER)
    options.add_connection(made)
    return made


def run(args: argparse.Namespace) -> int:
    if args.check:
        return check(args)
    options.utf8(args.file)
    spark_options.need_pyspark()
    from lastword.pipeline.plan.plan_file import read_plan

    plan = read_plan(args.file)
    if plan.mistakes:
        return _report(plan, list(plan.mistakes), as_json=args.json)
    connection = cluster_choice.connection(args)
    connection.reach()
    with spark_options.running_spark(args, connection=connection) as spark:
        from lastword.pipeline.checking.check import mistakes_in
        from lastword.pipeline.running.driver import PipelineRun

        if mistakes := mistakes_in(plan, spark, connection):
            return _report(plan, mistakes, as_json=args.json)
        line = _StatusLine(plan.pipeline, as_json=args.json)
        pipeline = PipelineRun(spark, plan.pipeline, choice=args.begin, on_event=line.event, on_status=line.row)
        _stop_on_signals(pipeline.stop)
        pipeline.run()
        line.end()
    return 0


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """The first signal stops the run in order, the next one at once; the next run continues in both cases."""

    def handle(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A signal that nohup ignores stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


class _StatusLine:
    """The status every two seconds: a line that is overwritten on a terminal, or a line of JSON."""

    def __init__(self, plan: Pipeline, *, as_json: bool) -> None:
        self._plan = plan
        self._as_json = as_json
        self._progress = ProgressLine()
        self._last: PipelineStatus | None = None

    def event(self, what: str) -> None:
        self._progress.clear()
        note(f"{self._plan.app}: {what}")

    def row(self, row: PipelineStatus) -> None:
        self._last = row
        if self._as_json:
            print_json(row)
            sys.stdout.flush()
            return
        latency = row.batch.latency_ms
        self._progress.step(
            f"{self._plan.app}: {row.rate:,.0f}/s, lag {'?' if row.lag is None else format(row.lag, ',')}, "
            f"latency {'-' if latency is None else f'{latency:,} ms'}, {row.valid:,} records, "
            f"{row.rejected:,} rejected"
        )

    def end(self) -> None:
        """Prints the final rows of the tables."""
        self._progress.clear()
        if self._as_json or self._last is None:
            return
        for table in self._plan.tables:
            rows = self._last.tables[table.topic]
            cells = [[rule, *(f"{sums[name]:,}" for name in table.counters)] for rule, sums in rows.items()]
            headings = [table.key.upper(), *(name.upper() for name in table.counters)]
            print_table(headings, cells, numeric=[False, *[True] * len(table.counters)])
        print(f"{self._last.valid:,} records, {self._last.rejected:,} rejected; stopped at {self._last.position}")


def check(args: argparse.Namespace) -> int:
    options.utf8(args.file)
    spark_options.need_pyspark()
    from lastword.kafka.client.connection import Connection
    from lastword.pipeline.checking.check import mistakes_in
    from lastword.pipeline.plan.plan_file import read_plan

    plan = read_plan(args.file)
    if not plan.is_toml:
        # Nothing for Spark to check, and Spark takes seconds to start.
        return _report(plan, list(plan.mistakes), as_json=args.json)
    cluster = _cluster(args)
    # A session needs a cluster, and nothing is read from this one.
    connection = cluster if isinstance(cluster, Connection) else Connection(bootstrap_servers="127.0.0.1:1")
    with spark_options.running_spark(args, connection=connection) as spark:
        progress = ProgressLine()
        progress.step(f"checking {args.file}")
        mistakes = mistakes_in(plan, spark, cluster)
        progress.clear()
        code = _report(plan, mistakes, as_json=args.json)
        sys.stdout.flush()
    return code


def _cluster(args: argparse.Namespace) -> Connection | ClusterUnreachable:
    try:
        return cluster_choice.connection(args)
    except ClusterUnreachable as away:
        return away


def _report(plan: PlanFile, mistakes: list[Mistake], *, as_json: bool) -> int:
    """Prints the mistakes, and returns the exit code."""
    rules, tables = len(plan.pipeline.rules), len(plan.pipeline.tables)
    if as_json:
        found = [MistakeLine(mistake.line, mistake.text, mistake.is_unreachable) for mistake in mistakes]
        print_json(CheckLine(plan.path, rules, tables, found))
    elif mistakes:
        for mistake in mistakes:
            print(printable(mistake.as_line(plan.path)), file=sys.stderr)
        note(f"{counted(len(mistakes), 'mistake')} in {plan.path}")
    else:
        print(f"{plan.path}: {counted(rules, 'rule')}, {counted(tables, 'table')}: fine")
    if not mistakes:
        return 0
    are_unreachable = all(mistake.is_unreachable for mistake in mistakes)
    return ClusterUnreachable.exit_code if are_unreachable else BadInput.exit_code
