"""What a query may be: something that only reads. Spark's own parser says what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from lastword.core.errors import BadInput

_READS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w*)", re.DOTALL)
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# What writes or runs a program, wherever it stands: WITH ... INSERT, FROM ... INSERT, SELECT TRANSFORM ... USING.
_ACTS = (
    f"{_LOGICAL}Command",
    f"{_LOGICAL}ParsedStatement",
    f"{_LOGICAL}InsertIntoDir",
    f"{_LOGICAL}ScriptTransformation",
)
# Commands that only tell something; one with another query inside gives it by this name.
_TELLS = {
    **dict.fromkeys(("ShowTables", "ShowColumns", "ShowFunctions", "DescribeFunction"), ""),
    **dict.fromkeys(("DescribeRelation", "DescribeRelationJsonCommand", "DescribeColumn"), ""),
    "ExplainCommand": "logicalPlan",
    "DescribeQueryCommand": "plan",
}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A parsed query; `plan` is Spark's, with nothing looked up yet."""

    plan: Any
    nodes: tuple[Any, ...]

    @property
    def is_about_query(self) -> bool:
        """Whether it tells something about another query: EXPLAIN, DESCRIBE QUERY."""
        return _inner(self.plan) is not None

    @property
    def is_told(self) -> bool:
        """Whether it tells something (SHOW, DESCRIBE, EXPLAIN), and is no query itself."""
        return simple_name(self.plan) in _TELLS

    @property
    def tables_pattern(self) -> str | None:
        """The pattern of SHOW TABLES, `*` without one; None for any other query."""
        if simple_name(self.plan) != "ShowTables":
            return None
        pattern = self.plan.pattern()
        return str(pattern.get()) if pattern.isDefined() else "*"

    def relations(self) -> set[str]:
        """The names in it that stand where a table is expected, but for those of several parts."""
        named = [node for node in self.nodes if simple_name(node) in ("UnresolvedRelation", "UnresolvedTableOrView")]
        parts = [node.multipartIdentifier() for node in named]
        return {str(name.head()) for name in parts if name.size() == 1}


def parsed(spark: SparkSession, query: str) -> Statement:
    """The query as Spark understands it; BadInput for one that could write or run something."""
    word = _FIRST_WORD.match(query)
    if word is not None and word[1] and word[1].upper() not in _READS:
        # Spark may say better what is wrong with a mistyped one.
        _parse(spark, query)
        raise _refused(word[1])
    plan = _parse(spark, query)
    nodes = tuple(nodes_of(plan))
    gateway = spark.sparkContext._gateway
    for node in nodes:
        is_told = node is plan and simple_name(node) in _TELLS
        if not is_told and any(is_instance_of(gateway, node, kind) for kind in _ACTS):
            raise _refused(_words(simple_name(node)))
    return Statement(plan=plan, nodes=nodes)


def analysed(spark: SparkSession, query: str) -> DataFrame:
    """The rows of a query, analysed and not computed; what tells something has been told."""
    # Parsed each time, because an analysis that fails leaves its mark on the plan.
    return _frame(spark, _parse(spark, query))


def analysed_inner(spark: SparkSession, query: str) -> DataFrame:
    """The query that another tells about: EXPLAIN would show the failure to analyse it as if it were the plan."""
    return _frame(spark, _inner(_parse(spark, query)))


def _frame(spark: SparkSession, plan: Any) -> DataFrame:
    return DataFrame(spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)  # type: ignore[union-attr]


def _parse(spark: SparkSession, query: str) -> Any:
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(query)


def _refused(what: str) -> BadInput:
    return BadInput(
        f"the query: {what} is refused, because a query only reads: write rows with  lastword put  or  lastword load, "
        "files with  lastword export"
    )


def nodes_of(plan: Any, is_left_out: Callable[[Any], bool] = lambda _: False) -> Iterator[Any]:
    """The plan and everything below it: children, WITH's queries, and subqueries inside expressions."""
    if is_left_out(plan):
        return
    yield plan
    if (inner := _inner(plan)) is not None:
        yield from nodes_of(inner, is_left_out)
    for plans in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for index in range(plans.size()):
            yield from nodes_of(plans.apply(index), is_left_out)


def _inner(plan: Any) -> Any:
    name = _TELLS.get(simple_name(plan))
    return getattr(plan, name)() if name else None


def _words(name: str) -> str:
    """INSERT INTO, for InsertIntoStatement."""
    words = re.findall("[A-Z][a-z]+", name)
    return " ".join(word.upper() for word in words if word not in ("Statement", "Command"))


def simple_name(node: Any) -> str:
    """The name of its class."""
    return str(node.getClass().getName()).rpartition(".")[2].rstrip("$")
