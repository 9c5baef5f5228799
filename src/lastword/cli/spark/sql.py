"""The verb `sql`: Spark SQL over topics as tables."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import note, print_table, styled
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import counted, printable
from lastword.cli.spark import spark_options
from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_ROWS = 100
_OF_A_TOPIC = re.compile(r"([A-Za-z0-9._-]+)=(.*)", re.DOTALL)

_EXAMPLE = """\
lastword sql 'SELECT version, count(*) FROM `user-profiles` GROUP BY version'
lastword sql 'SELECT key, name FROM `user-profiles` WHERE age > 30 ORDER BY age' --json
lastword sql 'SELECT sum(age) FROM `user-profiles`' --schema 'name STRING, age INT' --at 0:1,1:2,2:8
lastword sql - --format csv < query.sql > answer.csv"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Answers a query in Spark SQL. Every topic is a table (in backquotes if its name has dashes or dots) with the "
        "columns key, one for each field of the JSON values, partition, offset, timestamp, headers, decode_error. The "
        "query reads only the topics that it names, each up to its end at the start. It writes nothing, runs no code, "
        "and reads files only with --allow-files.",
        _EXAMPLE,
        sql,
    )
    made.add_argument("query", help="SELECT, WITH, VALUES, SHOW, DESCRIBE or EXPLAIN; - for standard input")
    made.add_argument("--format", choices=["table", "jsonl", "csv"], help="default table")
    made.add_argument("--json", action="store_true", help="JSON for programs: --format jsonl")
    made.add_argument(
        "--limit",
        type=options.count_argument,
        help=f"the most rows to show (default: {SHOWN_ROWS} in a table, else all)",
    )
    spark_options.add_at(made, "for a query of one topic: read the topic as it was")
    made.add_argument(
        "--schema",
        action="append",
        default=[],
        metavar="[TOPIC=]DDL",
        help="the columns, like 'name STRING, age INT', instead of the fields found in the values; may be repeated",
    )
    made.add_argument(
        "--allow-files", action="store_true", help="the query may also read files, like text.`/tmp/notes.txt`"
    )
    options.add_codecs(made)
    spark_options.add_spark(made)
    options.add_connection(made)
    return made


def sql(args: argparse.Namespace) -> int:
    form = _form(args)
    query = _query(args.query)
    key, value = codec_named(args.key_codec).name, codec_named(args.value_codec).name
    schemas = _schemas(args.schema)
    with spark_options.running_spark(args) as spark:
        from lastword.spark.query.sql import Reading, answer

        reading = Reading(key=key, value=value, schemas=schemas, at=args.at, allow_files=args.allow_files)
        progress = ProgressLine()
        progress.step("reading")
        answered = answer(spark, query, reading)
        progress.clear()
        if sys.stderr.isatty() and form != "jsonl":
            for topic, position in answered.positions.items():
                note(f"{topic} at {position}")
        _print(answered.rows, form, args.limit)
        sys.stdout.flush()
    return 0


def _print(rows: DataFrame, form: str, limit: int | None) -> None:
    from lastword.spark.query.rows_as_text import csv_lines, json_lines

    if form == "table":
        _print_as_table(rows, SHOWN_ROWS if limit is None else limit)
        return
    lines, end = (csv_lines(rows, limit), b"\r\n") if form == "csv" else (json_lines(rows, limit), b"\n")
    write = sys.stdout.buffer.write
    # Closed before Spark ends, also if the reader of our pipe has left: PySpark would complain of a lost JVM.
    with closing(lines):
        for line in lines:
            write(line.encode() + end)


def _print_as_table(rows: DataFrame, limit: int) -> None:
    from pyspark.sql.types import NumericType

    from lastword.spark.query.rows_as_text import first_cells

    # One row more than is shown, to know whether there are more.
    first_rows = first_cells(rows, limit + 1)
    cells = [["NULL" if text is None else printable(text) for text in row] for row in first_rows[:limit]]
    print_table(rows.columns, cells, numeric=[isinstance(each.dataType, NumericType) for each in rows.schema])
    if len(first_rows) > limit:
        print(styled(f"the first {limit} rows, and there are more: raise --limit, or take all with --json", "dim"))
    else:
        print(styled(counted(len(first_rows), "row"), "dim"))


def _form(args: argparse.Namespace) -> str:
    if args.json and args.format not in (None, "jsonl"):
        raise BadInput(f"--json and --format {args.format} differ: use only one of these options")
    return "jsonl" if args.json else args.format or "table"


def _query(text: str) -> str:
    if text != "-":
        options.utf8(text)
        return text
    if sys.stdin is None:
        raise BadInput("standard input is closed: give the query as an argument")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise BadInput("the query on standard input is not UTF-8 text") from None


def _schemas(given: list[str]) -> dict[str | None, str]:
    """By topic; under None the schema without a topic."""
    schemas: dict[str | None, str] = {}
    for text in given:
        options.utf8(text)
        named = _OF_A_TOPIC.fullmatch(text)
        topic, ddl = (named[1], named[2]) if named else (None, text)
        if topic in schemas:
            raise BadInput(f"--schema {text!r}: a second one for {topic or 'the topic'}: keep one of them")
        schemas[topic] = ddl
    return schemas
