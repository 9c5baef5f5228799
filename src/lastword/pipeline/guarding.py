"""Expressions that may fail on a record: each is tried, and which of them failed is part of the answer.

Spark has a node that gives null where what is below it throws, and no SQL for it. It catches exceptions, and no errors
(memory or a stack that runs out): those fail a task, as does an expression that is not tried here, and `isolation`
then looks for the record.

Nothing of an expression may be computed outside of its node: a session that is `guarded` keeps Spark from that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession

_RULES = "org.apache.spark.sql.catalyst.optimizer"
_SETTINGS = {
    # An answer is right, or an error: numbers do not wrap, and a text that is no number is not null.
    "spark.sql.ansi.enabled": "true",
    # What two expressions share would be computed once, ahead of both.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.alwaysInlineCommonExpr": "true",
    # The condition of an if would be computed outside, and only its branches inside.
    "spark.sql.optimizer.excludedRules": f"{_RULES}.PushFoldableIntoBranches,{_RULES}.NullDownPropagation",
}
# What makes maps keeps the keys of one that it gave up in the middle, and the next record would find them there.
_MAKES_MAPS = re.compile(
    r"\b(map|map_concat|map_from_arrays|map_from_entries|str_to_map|transform_keys)`?\s*\(", re.IGNORECASE
)
# Spark takes the absolute value of its index, and the least integer has none: it would read memory that is not its own.
_ELEMENT_AT = re.compile(r"\b(try_)?element_at\b", re.IGNORECASE)
# Of an expression in a reason.
_LONGEST = 120


def guarded(spark: SparkSession) -> SparkSession:
    """A session beside this one, for the expressions of a pipeline."""
    made = spark.newSession()
    for name, value in _SETTINGS.items():
        made.conf.set(name, value)
    return made


@dataclass(frozen=True, kw_only=True)
class Part:
    """What may fail: how a reason calls it, and SQL that is true if it has."""

    label: str
    fails: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A column of this name with what the SQL gives, which is made `of` expressions of the file."""

    name: str
    sql: str
    of: Sequence[str]


def tried(frame: DataFrame, attempts: Iterable[Attempt]) -> list[Column]:
    """Their columns beside those of the frame, null where the SQL fails."""
    spark, jvm = frame.sparkSession, cast("Any", frame.sparkSession._jvm)
    # Whether a sum may wrap is decided when it is parsed, by the session that is active.
    jvm.SparkSession.setActiveSession(spark._jsparkSession)
    parser = spark._jsparkSession.sessionState().sqlParser()
    guard = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
    column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    columns = []
    for attempt in attempts:
        made = parser.parseExpression(attempt.sql)
        if any(map(_ELEMENT_AT.search, attempt.of)):
            analysed = frame.select(Column(column(made)).alias(attempt.name))._jdf.queryExecution().analyzed()
            made = _within_bounds(jvm, analysed.expressions().head().children().head())
        columns.append(Column(column(guard(made) if all(map(is_tried, attempt.of)) else made)).alias(attempt.name))
    return columns


def _within_bounds(jvm: Any, node: Any) -> Any:
    """The tree with an index of 0, which is an error, wherever element_at would get the least of all integers."""
    tree, below = jvm.org.apache.spark.sql.catalyst.expressions, node.children()
    old = [below.apply(at) for at in range(below.size())]
    new = [_within_bounds(jvm, each) for each in old]
    if str(node.nodeName()) == "ElementAt" and new[0].dataType().typeName() == "array":
        zero, least = (tree.Literal(number, new[1].dataType()) for number in (0, -(2**31)))
        new[1] = tree.If(tree.EqualTo(new[1], least), zero, new[1])
    return node if new == old else node.withNewChildren(jvm.PythonUtils.toSeq(new))


def is_tried(expression: str) -> bool:
    """Whether a record on which it fails is found at once, and not by `isolation`."""
    return _MAKES_MAPS.search(expression) is None


def failed_parts(parts: Sequence[Part]) -> tuple[str, str]:
    """SQL that says whether any of them failed, and SQL for the numbers of those that did; null if none did."""
    # No condition may be null: the next one would not be looked at.
    has_failed = f"({' OR '.join(f'coalesce({part.fails}, false)' for part in parts)})"
    numbers = ", ".join(f"if({part.fails}, '{number}', NULL)" for number, part in enumerate(parts))
    return has_failed, f"if({has_failed}, concat_ws(',', {numbers}), NULL)"


def one_line(expression: str) -> str:
    """As a reason shows it."""
    text = " ".join(expression.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
