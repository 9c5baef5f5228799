"""What a query may be: something that only reads. Spark's own parser says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

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
_TELLS = ("Show", "Describe", "Explain")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A parsed query; `plan` is Spark's, with nothing looked up yet."""

    plan: Any
    nodes: tuple[Any, ...]

    @property
    def is_explain(self) -> bool:
        return _name(self.plan) == "ExplainCommand"

    @property
    def tables_pattern(self) -> str | None:
        """The pattern of SHOW TABLES, `*` without one; None for any other query."""
        if _name(self.plan) != "ShowTables":
            return None
        pattern = self.plan.pattern()
        return str(pattern.get()) if pattern.isDefined() else "*"

    def relations(self) -> set[str]:
        """The names in it that stand where a table is expected, but for those of several parts."""
        named = [node for node in self.nodes if _name(node) in ("UnresolvedRelation", "UnresolvedTableOrView")]
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
    nodes = tuple(_nodes(plan))
    gateway = spark.sparkContext._gateway
    for node in nodes:
        is_told = node is plan and _name(node).startswith(_TELLS)
        if not is_told and any(is_instance_of(gateway, node, kind) for kind in _ACTS):
            raise _refused(_words(_name(node)))
    return Statement(plan=plan, nodes=nodes)


def analyse_explained(spark: SparkSession, query: str) -> None:
    """Analyses the query that an EXPLAIN is about: Spark would show the failure as if it were the plan."""
    # Parsed each time, because an analysis that fails leaves its mark on the plan.
    plan = _parse(spark, query).logicalPlan()
    spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)  # type: ignore[union-attr]


def _parse(spark: SparkSession, query: str) -> Any:
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(query)


def _refused(what: str) -> BadInput:
    return BadInput(
        f"the query: {what} is refused, because a query only reads: write rows with  lastword put  or  lastword load, "
        "files with  lastword export"
    )


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan and everything below it: children, WITH's queries, and subqueries inside expressions."""
    yield plan
    below = [plan.children(), plan.innerChildren(), plan.subqueries()]
    if _name(plan) == "ExplainCommand":
        yield from _nodes(plan.logicalPlan())
    for plans in below:
        for index in range(plans.size()):
            yield from _nodes(plans.apply(index))


def _words(name: str) -> str:
    """INSERT INTO, for InsertIntoStatement."""
    words = re.findall("[A-Z][a-z]+", name)
    return " ".join(word.upper() for word in words if word not in ("Statement", "Command"))


def _name(node: Any) -> str:
    return str(node.nodeName()).rsplit(".", 1)[-1]
