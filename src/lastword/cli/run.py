"""The verb `run`: the pipeline that a file says."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from lastword.cli import options, spark_options
from lastword.cli.output import Progress, counted, note, print_json, printable
from lastword.core.errors import BadInput, ClusterUnreachable

if TYPE_CHECKING:
    from lastword.kafka.connection import Connection
    from lastword.pipeline.mistakes import Mistake
    from lastword.pipeline.plan_file import PlanFile

_EXAMPLE = """\
lastword run pipelines/teams.toml --check
lastword run pipelines/teams.toml --check --json"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Checks a pipeline file without running it: its form, its SQL (which Spark analyses) and its topics. Every "
        "mistake is a line of its own, with the file's line and what to do; then the exit code is 2, or 3 when nothing "
        "is wrong but that the cluster can't be reached.",
        _EXAMPLE,
        check,
    )
    made.add_argument("file", help="a pipeline file (TOML)")
    made.add_argument("--check", action="store_true", required=True, help="say what is wrong with the file")
    options.add_json(made)
    spark_options.add_spark(made)
    options.add_connection(made)
    return made


def check(args: argparse.Namespace) -> int:
    options.utf8(args.file)
    spark_options.need_pyspark()
    from lastword.kafka.connection import Connection
    from lastword.pipeline.checking import mistakes_in
    from lastword.pipeline.plan_file import read_plan

    plan = read_plan(args.file)
    if not plan.says_anything:
        # Nothing for Spark to look at, which takes seconds to start.
        return _told(plan, list(plan.mistakes), as_json=args.json)
    cluster = _cluster(args)
    # A session is a cluster's, and nothing is read from this one.
    connection = cluster if isinstance(cluster, Connection) else Connection(bootstrap_servers="127.0.0.1:1")
    with spark_options.running_spark(args, connection=connection) as spark:
        progress = Progress()
        progress.step(f"checking {args.file}")
        mistakes = mistakes_in(plan, spark, cluster)
        progress.clear()
        code = _told(plan, mistakes, as_json=args.json)
        sys.stdout.flush()
    return code


def _cluster(args: argparse.Namespace) -> Connection | ClusterUnreachable:
    try:
        return options.connection(args)
    except ClusterUnreachable as away:
        return away


def _told(plan: PlanFile, mistakes: list[Mistake], *, as_json: bool) -> int:
    """Prints what was found, and gives the exit code for it."""
    rules, tables = len(plan.pipeline.rules), len(plan.pipeline.tables)
    if as_json:
        told = [
            {"line": mistake.line, "text": mistake.text, "is_unreachable": mistake.is_unreachable}
            for mistake in mistakes
        ]
        print_json({"file": plan.path, "rules": rules, "tables": tables, "mistakes": told})
    elif mistakes:
        for mistake in mistakes:
            print(printable(mistake.told(plan.path)), file=sys.stderr)
        note(f"{counted(len(mistakes), 'mistake')} in {plan.path}")
    else:
        print(f"{plan.path}: {counted(rules, 'rule')}, {counted(tables, 'table')}: fine")
    if not mistakes:
        return 0
    are_unreachable = all(mistake.is_unreachable for mistake in mistakes)
    return ClusterUnreachable.exit_code if are_unreachable else BadInput.exit_code
