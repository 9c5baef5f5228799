"""The verb `export`: a table at a position as files."""

from __future__ import annotations

import argparse
import sys

from lastword.cli import cluster_choice, options
from lastword.cli.output import note, print_json
from lastword.cli.progress_line import ProgressLine
from lastword.cli.spark import spark_options
from lastword.core.codecs import codec_named

_EXAMPLE = """\
lastword export user-profiles users --format parquet
lastword export user-profiles users --format delta --overwrite
lastword export user-profiles users.jsonl --format jsonl && cat users.jsonl/part-* | lastword load copy -
lastword export user-profiles s3a://bucket/users --format csv --at 2026-03-01T12:00:00Z"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Writes a table at a position to a folder, by Spark. The file _lastword.json in the folder has the topic, the "
        "position and the number of rows. It is written last: a folder without it is not a whole export.",
        _EXAMPLE,
        export,
    )
    made.add_argument("topic")
    made.add_argument("path", help="a folder, or a URL that Spark can write to")
    made.add_argument("--format", choices=["parquet", "delta", "csv", "jsonl"], required=True)
    made.add_argument("--overwrite", action="store_true", help="replace the export in the folder")
    spark_options.add_at(made, "the table as it was")
    made.add_argument("--raw", action="store_true", help="one column `value` instead of one for each field of it")
    made.add_argument(
        "--schema", metavar="DDL", help="the columns, like 'name STRING, age INT', instead of those found in the values"
    )
    options.add_json(made)
    options.add_codecs(made)
    spark_options.add_spark(made)
    options.add_connection(made)
    return made


def export(args: argparse.Namespace) -> int:
    for text in (args.path, args.schema or ""):
        options.utf8(text)
    key, value = codec_named(args.key_codec).name, codec_named(args.value_codec).name
    spark_options.need_pyspark()
    from lastword.spark.query.export import Exporting, export_table, refuse_occupied

    exporting = Exporting(
        topic=args.topic,
        format=args.format,
        at=args.at,
        key=key,
        value=value,
        columns=not args.raw,
        schema=args.schema,
    )
    # Before Spark starts, which takes seconds; it is checked again then.
    refuse_occupied(args.path, args.format, overwrite=args.overwrite)
    # First: a missing topic is an error at once, and not after the seconds that Spark takes to start.
    connection = cluster_choice.connection(args)
    connection.topic(args.topic)
    with spark_options.running_spark(args, connection=connection, delta=args.format == "delta") as spark:
        progress = ProgressLine()
        progress.step(f"exporting {args.topic}")
        done = export_table(spark, args.path, exporting, overwrite=args.overwrite)
        progress.clear()
        if done.unreadable:
            note(f"{done.unreadable} of the rows could not be decoded: their decode_error says why")
        if args.json:
            print_json(done)
        else:
            print(f"{done.rows} rows of {done.topic} at {done.position} are in {args.path} ({done.format})")
        sys.stdout.flush()
    return 0
