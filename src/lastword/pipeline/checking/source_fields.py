"""The source's schema, column by column, so that one bad column hides no other mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lastword.core.nearest import did_you_mean
from lastword.pipeline.plan.mistakes import Problem
from lastword.spark.reading.json_text import is_json_kind
from lastword.spark.session.failures import place_of, reason_of
from lastword.spark.session.pyspark_private import sql_parser

# What expressions know beside the fields, and where.
RESERVED = {"rule": "the rule's name in key and value", "matched": "whether the rule matches in counters"}

_TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "LONG",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "VARIANT",
    "ARRAY",
    "MAP",
    "STRUCT",
)
_COMMENT = r"--[^\n]*|/\*.*?\*/"
_QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`"
_MARK = re.compile(rf"{_COMMENT}|{_QUOTED}|[(<]|[)>]|,", re.DOTALL)
_BLANK = re.compile(rf"(?:\s|{_COMMENT})*", re.DOTALL)
_NAME = re.compile(r"`((?:``|[^`])*)`|(\w+)")
_NAMES = re.compile(r"(?:^|,)\s*`?(\w+)")


@dataclass(frozen=True, kw_only=True)
class SourceFields:
    """The correct fields, the names (in lower case) of those with a mistake, and the mistakes."""

    fields: StructType
    broken: frozenset[str]
    problems: tuple[Problem, ...]


def source_fields(spark: SparkSession, ddl: str) -> SourceFields:
    fields: dict[str, StructField] = {}
    broken: set[str] = set()
    problems = []
    # A missing schema is reported already.
    for after, column in _columns(ddl) if ddl else ():
        named = _NAME.match(column)
        name = (named[1] or named[2] or "").replace("``", "`") if named else ""
        field = _field(spark, column, name, fields)
        if isinstance(field, StructField):
            fields[name.lower()] = field
        else:
            problems.append(Problem(text=field.text, after=after + field.after))
            # A bracket that nothing closes has swallowed other columns. A second one of a name leaves the first alone.
            broken.update({each.lower() for each in _NAMES.findall(column)} - fields.keys())
    return SourceFields(fields=StructType([*fields.values()]), broken=frozenset(broken), problems=tuple(problems))


def _field(spark: SparkSession, column: str, name: str, known: dict[str, StructField]) -> StructField | Problem:
    """The field of one column, or the mistake in it."""
    if not column:
        return Problem(text="a column is missing beside a comma: add it, or remove the comma")
    if name.lower() in RESERVED:
        taken = f"which means {RESERVED[name.lower()]}"
        return Problem(text=f"a field can't be called {name!r}, {taken}: leave it out")
    if name.lower() in known:
        first = known[name.lower()].name
        return Problem(text=f"a second field {name!r}, which Spark can't tell from {first!r}: keep one of them")
    try:
        parsed = sql_parser(spark).parseTableSchema(column)
        field = StructType.fromJson(json.loads(parsed.json()))[0]
        spark.range(0).select(F.from_json(F.lit("{}"), StructType([field])))
    except PySparkException as failure:
        line, _ = place_of(failure) or (1, 1)
        return Problem(text=f"column {(name or column)!r}: {_reason(failure)}", after=line - 1)
    if not is_json_kind(field.dataType):
        kind = field.dataType.simpleString().upper()
        return Problem(text=f"column {name!r}: JSON has no {kind}: read it as a STRING")
    return field


def _reason(failure: PySparkException) -> str:
    unknown = (failure.getMessageParameters() or {}).get("typeName", "").strip('"')
    if failure.getCondition() != "UNSUPPORTED_DATATYPE" or not unknown:
        return f"{reason_of(failure)}: write it like  email STRING NOT NULL"
    return f"no type {unknown!r}: {did_you_mean(unknown.upper(), _TYPES) or 'use one like  STRING, INT, BIGINT'}"


def _columns(ddl: str) -> Iterator[tuple[int, str]]:
    """The columns between the commas, each with how many lines come before it."""
    depth = start = 0
    for mark in [*_MARK.finditer(ddl), None]:
        text = mark[0] if mark else ","
        depth += (text in "(<") - (text in ")>")
        if text == "," and (depth <= 0 or mark is None):
            begin = _BLANK.match(ddl, start)
            at = begin.end() if begin else start
            end = mark.start() if mark else len(ddl)
            # An empty column has the line of the comma before it.
            yield ddl.count("\n", 0, at if at < end else start), ddl[at:end].strip()
            start = mark.end() if mark else end
