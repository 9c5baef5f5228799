"""Expressions that may fail on a record: each is guarded, and the answer says which of them failed.

Spark has a node, `TryEval`, that gives null if the expression below it throws; there is no SQL for this node. It
catches exceptions but no errors (memory or a stack that runs out). An error fails the task, as does an expression that
is not guarded here; `isolation` then searches for the record.

No part of an expression may be computed outside of its node: a session that is `guarded` prevents that.
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
    # A wrong result is an error instead: numbers do not wrap, and text that is not a number does not become null.
    "spark.sql.ansi.enabled": "true",
    # A part that two expressions share would be computed once, before both of them.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.alwaysInlineCommonExpr": "true",
    # The condition of an if would be computed outside, and only its branches inside.
    "spark.sql.optimizer.excludedRules": f"{_RULES}.PushFoldableIntoBranches,{_RULES}.NullDownPropagation",
}
# After a failure these keep the keys of the unfinished map, and the next record would find them there.
_MAKES_MAPS = frozenset({"CreateMap", "MapConcat", "MapFromArrays", "MapFromEntries", "StringToMap", "TransformKeys"})
# By the name of a node: the child that must stay within bounds, and the bounds. A value outside them is an error.
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
# The most characters of an expression in a reason.
_LONGEST = 120


def guarded(spark: SparkSession) -> SparkSession:
    """A session beside this one, for the expressions of a pipeline."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


@dataclass(frozen=True, kw_only=True)
class GuardedPart:
    """An expression that may fail: its label in a reason, and SQL that is true if it has failed."""

    label: str
    fails: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A column with this name and the result of the SQL."""

    name: str
    sql: str


def tried(frame: DataFrame, attempts: Sequence[Attempt]) -> list[Column]:
    """The columns of these attempts over the frame, null where the SQL fails."""
    spark, jvm = frame.sparkSession, jvm_of(frame.sparkSession)
    # The session that is active while a sum is parsed decides whether the sum may wrap.
    set_active(spark)
    parser = sql_parser(spark)
    guard = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
    column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    parsed = [parser.parseExpression(attempt.sql) for attempt in attempts]
    named = [Column(column(tree)).alias(attempt.name) for tree, attempt in zip(parsed, attempts, strict=True)]
    analysed = analysed_plan(frame.select(*named)).expressions()
    columns = []
    for number, (tree, attempt) in enumerate(zip(parsed, attempts, strict=True)):
        # By the nodes that Spark makes of a function: its name in the file says little.
        expression = analysed.apply(number).children().head()
        nodes = set(_CLASS.findall(expression.toJSON()))
        bounded = tree if nodes.isdisjoint(_BOUNDS) else _within_bounds(jvm, parser, expression)
        columns.append(Column(column(guard(bounded) if nodes.isdisjoint(_MAKES_MAPS) else bounded)).alias(attempt.name))
    return columns


def _within_bounds(jvm: Any, parser: Any, node: Any) -> Any:
    """The tree with an error wherever a function would get a number outside of its bounds."""
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
    """SQL that is true if any part failed, and SQL for the numbers of the failed parts; null if none failed."""
    # No condition may be null: the next one would not be looked at.
    has_failed = f"({' OR '.join(f'coalesce({part.fails}, false)' for part in parts)})"
    numbers = ", ".join(f"if({part.fails}, '{number}', NULL)" for number, part in enumerate(parts))
    return has_failed, f"if({has_failed}, concat_ws(',', {numbers}), NULL)"


def one_line(expression: str) -> str:
    """As a reason shows it."""
    text = " ".join(expression.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
