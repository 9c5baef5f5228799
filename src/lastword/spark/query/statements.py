"""The statements that a query may be: those that only read, as Spark's own parser sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lastword.core.errors import BadInput
from lastword.spark.session.catalyst import class_name, items, nodes_of
from lastword.spark.session.pyspark_private import frame_of, is_java_instance, sql_parser

_READS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w*)", re.DOTALL)
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# Nodes that write or run a program, at any depth: WITH ... INSERT, FROM ... INSERT, SELECT TRANSFORM ... USING.
_ACTS = (
    f"{_LOGICAL}Command",
    f"{_LOGICAL}ParsedStatement",
    f"{_LOGICAL}InsertIntoDir",
    f"{_LOGICAL}ScriptTransformation",
)
# Commands that only give information, each with the method for the query inside it; empty without a query.
_INFORMATIONAL = {
    **dict.fromkeys(("ShowTables", "ShowColumns", "ShowFunctions", "DescribeFunction"), ""),
    **dict.fromkeys(("DescribeRelation", "DescribeRelationJsonCommand", "DescribeColumn"), ""),
    "ExplainCommand": "logicalPlan",
    "DescribeQueryCommand": "plan",
}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A parsed query; `plan` is Spark's, with no name resolved yet."""

    plan: Any
    nodes: tuple[Any, ...]

    @property
    def is_about_query(self) -> bool:
        """Whether it is about another query: EXPLAIN, DESCRIBE QUERY."""
        return _inner(self.plan) is not None

    @property
    def is_informational(self) -> bool:
        """Whether the statement only gives information (SHOW, DESCRIBE, EXPLAIN), and is no query itself."""
        return class_name(self.plan) in _INFORMATIONAL

    @property
    def tables_pattern(self) -> str | None:
        """The pattern of SHOW TABLES, `*` without one; None for any other query."""
        if class_name(self.plan) != "ShowTables":
            return None
        pattern = self.plan.pattern()
        return str(pattern.get()) if pattern.isDefined() else "*"

    def relations(self) -> set[str]:
        """The names of tables in it, without names of several parts."""
        named = [node for node in self.nodes if class_name(node) in ("UnresolvedRelation", "UnresolvedTableOrView")]
        parts = [node.multipartIdentifier() for node in named]
        return {str(name.head()) for name in parts if name.size() == 1}


def parsed(spark: SparkSession, query: str) -> Statement:
    """The query as Spark's parser sees it; BadInput if it could write or run something."""
    word = _FIRST_WORD.match(query)
    if word is not None and word[1] and word[1].upper() not in _READS:
        # First parsed: for a typing mistake Spark has the better error.
        _parse(spark, query)
        raise _refused(word[1])
    plan = _parse(spark, query)
    nodes = tuple(plan_nodes(plan))
    for node in nodes:
        is_informational = node is plan and class_name(node) in _INFORMATIONAL
        if not is_informational and any(is_java_instance(spark, node, kind) for kind in _ACTS):
            raise _refused(words_of(class_name(node)))
    return Statement(plan=plan, nodes=nodes)


def analysed(spark: SparkSession, query: str) -> DataFrame:
    """The rows of a query, analysed and not computed; an informational statement has run."""
    # Parsed each time, because a failed analysis changes the plan.
    return frame_of(spark, _parse(spark, query))


def analysed_inner(spark: SparkSession, query: str) -> DataFrame:
    """The query inside an EXPLAIN or DESCRIBE, analysed: EXPLAIN would show an error in it as if it were the plan."""
    return frame_of(spark, _inner(_parse(spark, query)))


def _parse(spark: SparkSession, query: str) -> Any:
    return sql_parser(spark).parsePlan(query)


def _refused(what: str) -> BadInput:
    return BadInput(
        f"the query: {what} is refused, because a query only reads: write rows with  lastword put  or  lastword load, "
        "files with  lastword export"
    )


def plan_nodes(plan: Any, is_left_out: Callable[[Any], bool] = lambda _: False) -> Iterator[Any]:
    """The plan and everything below it: children, WITH's queries, and subqueries inside expressions."""

    def below(node: Any) -> Iterator[Any]:
        if (inner := _inner(node)) is not None and not is_left_out(inner):
            yield inner
        for plans in (node.children(), node.innerChildren(), node.subqueries()):
            yield from (each for each in items(plans) if not is_left_out(each))

    return iter(()) if is_left_out(plan) else nodes_of(plan, below)


def _inner(plan: Any) -> Any:
    name = _INFORMATIONAL.get(class_name(plan))
    return getattr(plan, name)() if name else None


def words_of(name: str) -> str:
    """INSERT INTO, for InsertIntoStatement."""
    words = re.findall("[A-Z][a-z]+", name)
    return " ".join(word.upper() for word in words if word not in ("Statement", "Command"))
