"""Options that the verbs on Spark share, and the session for them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.output import note
from lastword.cli.progress_line import ProgressLine
from lastword.core.errors import BadInput, ExtraMissing
from lastword.core.position import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lastword.kafka.client.connection import Connection


def add_spark(parser: argparse.ArgumentParser, *, master: str = "local[*]") -> None:
    group = parser.add_argument_group("spark")
    group.add_argument("--master", default=master, metavar="URL", help="a Spark cluster; default: this machine")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting of Spark's, like spark.driver.memory=8g; may be repeated",
    )
    group.add_argument("--ui", action="store_true", help="Spark's own pages over HTTP, while it runs")


def add_at(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--at",
        type=moment_or_position,
        metavar="WHEN",
        help=f"{what} then: a position like 0:18,1:5, or a time like 2026-03-01T12:00:00Z (default: now)",
    )


def moment_or_position(text: str) -> Position | datetime:
    """A position, or a time: ISO 8601 (UTC unless it says otherwise), or integer ms since 1970."""
    try:
        # Shorter ones are dates: 20260301.
        if text.isascii() and text.isdigit() and len(text) >= 12:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        moment = datetime.fromisoformat(text)
        # As every verb shows times.
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        if position := Position.parse(text):
            return position
    except BadInput:
        pass
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither a position like 0:18,1:5 nor a time like 2026-03-01T12:00:00Z"
    )


def need_pyspark() -> None:
    if find_spec("pyspark") is None:
        raise ExtraMissing("pyspark (queries, exports and pipelines run on it)", "spark")


@contextmanager
def running_spark(
    args: argparse.Namespace, *, connection: Connection | None = None, delta: bool = False
) -> Iterator[SparkSession]:
    """A session for one verb, which ends with the block if it was started here.

    The cluster must answer, unless its `connection` is given.
    """
    need_pyspark()
    if connection is None:
        connection = cluster_choice.connection(args)
        # First: an unreachable cluster is an error at once, and not after the seconds that Spark takes to start.
        connection.reach()
    progress = ProgressLine()
    progress.step("starting Spark")
    from lastword.spark import stop
    from lastword.spark.session.pyspark_private import active_context
    from lastword.spark.session.session import session

    is_ours = active_context() is None
    # Spark's log would repeat every failure over many lines; --set spark.log.level turns it on.
    quiet = {"spark.log.level": "OFF"} if is_ours else {}
    settings = {**quiet, **options.settings(args.set, like="spark.driver.memory=8g")}
    spark = session(connection, master=args.master, settings=settings, delta=delta, ui=args.ui, tell=progress.line)
    progress.clear()
    try:
        if args.ui:
            note(f"Spark's pages are at {spark.sparkContext.uiWebUrl}")
        # A session of the program keeps its own views.
        yield spark if is_ours else spark.newSession()
    finally:
        if is_ours:
            stop(spark)
            progress.clear()
