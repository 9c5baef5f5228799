"""Expressions that may fail on a record: each is tried, and which of them failed is part of the answer.

Spark has a node that gives null where what is below it throws, and no SQL for it. It catches exceptions, and no errors
(memory or a stack that runs out): those fail a task, as does an expression that is not tried here, and `isolation`
then looks for the record.

Nothing of an expression may be computed outside of its node: a session that is `guarded` keeps Spark from that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from lastword.spark.session.catalyst import children
from lastword.spark.session.pyspark_private import analysed_plan, jvm_of, set_active, sql_parser

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
_MAKES_MAPS = frozenset({"CreateMap", "MapConcat", "MapFromArrays", "MapFromEntries", "StringToMap", "TransformKeys"})
# By the name of a node: the child that has bounds, what they are, and what is an error instead.
#
# element_at takes the absolute value of its index, and the least integer has none: it would read memory that is not its
# own. Days wrap, and a number without a BIGINT near it is rounded to the largest there is.
_MOST_DAYS, _MOST_ROUNDED = 2**30, 9.2e18
_BOUNDS = {
    "ElementAt": (1, -(2**31) + 1, 2**31 - 1),
    "DateAdd": (1, -_MOST_DAYS, _MOST_DAYS),
    "DateSub": (1, -_MOST_DAYS, _MOST_DAYS),
    "Ceil": (0, -_MOST_ROUNDED, _MOST_ROUNDED),
    "Floor": (0, -_MOST_ROUNDED, _MOST_ROUNDED),
}
# The classes of a tree that is written as JSON.
_CLASS = re.compile(r'"class":"[\w.$]*?(\w+)"')
# Of an expression in a reason.
_LONGEST = 120


def guarded(spark: SparkSession) -> SparkSession:
    """A session beside this one, for the expressions of a pipeline."""
    made = spark.newSession()
    for name, value in _SETTINGS.items():
        made.conf.set(name, value)
    return made


@dataclass(frozen=True, kw_only=True)
class GuardedPart:
    """What may fail: how a reason calls it, and SQL that is true if it has."""

    label: str
    fails: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A column of this name with what the SQL gives."""

    name: str
    sql: str


def tried(frame: DataFrame, attempts: Sequence[Attempt]) -> list[Column]:
    """Their columns beside those of the frame, null where the SQL fails."""
    spark, jvm = frame.sparkSession, jvm_of(frame.sparkSession)
    # Whether a sum may wrap is decided when it is parsed, by the session that is active.
    set_active(spark)
    parser = sql_parser(spark)
    guard = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
    column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    parsed = [parser.parseExpression(attempt.sql) for attempt in attempts]
    named = [Column(column(tree)).alias(attempt.name) for tree, attempt in zip(parsed, attempts, strict=True)]
    analysed = analysed_plan(frame.select(*named)).expressions()
    columns = []
    for number, (tree, attempt) in enumerate(zip(parsed, attempts, strict=True)):
        # What a function is called in the file says little: decided is by what Spark makes of it.
        meant = analysed.apply(number).children().head()
        nodes = set(_CLASS.findall(meant.toJSON()))
        made = tree if nodes.isdisjoint(_BOUNDS) else _within_bounds(jvm, parser, meant)
        columns.append(Column(column(guard(made) if nodes.isdisjoint(_MAKES_MAPS) else made)).alias(attempt.name))
    return columns


def _within_bounds(jvm: Any, parser: Any, node: Any) -> Any:
    """The tree with an error wherever a function would get a number that it has no right answer for."""
    tree, old = jvm.org.apache.spark.sql.catalyst.expressions, [*children(node)]
    new = [_within_bounds(jvm, parser, each) for each in old]
    bounds = _BOUNDS.get(str(node.nodeName()))
    if bounds is not None:
        at, least, most = bounds
        kind = new[at].dataType()
        if kind.typeName() in ("integer", "double") and new[0].dataType().typeName() != "map":
            lowest, highest = (tree.Literal(number, kind) for number in (least, most))
            is_within = tree.And(tree.GreaterThanOrEqual(new[at], lowest), tree.LessThanOrEqual(new[at], highest))
            error = parser.parseExpression(f"cast('out of range' AS {kind.typeName()})")
            new[at] = tree.If(tree.Or(tree.IsNull(new[at]), is_within), new[at], error)
    return node if new == old else node.withNewChildren(jvm.PythonUtils.toSeq(new))


def failed_parts(parts: Sequence[GuardedPart]) -> tuple[str, str]:
    """SQL that says whether any of them failed, and SQL for the numbers of those that did; null if none did."""
    # No condition may be null: the next one would not be looked at.
    has_failed = f"({' OR '.join(f'coalesce({part.fails}, false)' for part in parts)})"
    numbers = ", ".join(f"if({part.fails}, '{number}', NULL)" for number, part in enumerate(parts))
    return has_failed, f"if({has_failed}, concat_ws(',', {numbers}), NULL)"


def one_line(expression: str) -> str:
    """As a reason shows it."""
    text = " ".join(expression.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
