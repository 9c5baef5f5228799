"""All mistakes in a pipeline file at once: in its form, its SQL and its topics."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from lastword.core.errors import ClusterUnreachable
from lastword.kafka.client.connection import Connection
from lastword.pipeline.checking.expressions import COUNTER, KEY, VALUE, WHEN, Expressions, Role
from lastword.pipeline.checking.source_fields import source_fields
from lastword.pipeline.checking.topic_check import topic_mistakes
from lastword.pipeline.evaluation.guarding import guarded
from lastword.pipeline.plan.mistakes import Mistake, Problem, label
from lastword.pipeline.plan.plan_file import PlanFile
from lastword.pipeline.plan.toml_lines import KeyPath
from lastword.spark.session.failures import one_line_failures


def mistakes_in(plan: PlanFile, spark: SparkSession, cluster: Connection | ClusterUnreachable) -> list[Mistake]:
    """All mistakes in a file in the order of its lines; a cluster that can't be reached is one of them."""
    with one_line_failures("the SQL of the file"):
        sql = [*_sql_mistakes(plan, guarded(spark))]
    mistakes = [*plan.mistakes, *sql, *topic_mistakes(plan, cluster)]
    return sorted(mistakes, key=lambda mistake: mistake.line)


def _sql_mistakes(plan: PlanFile, spark: SparkSession) -> Iterator[Mistake]:
    source = source_fields(spark, plan.pipeline.source.schema)
    for problem in source.problems:
        yield _mistake(plan, ("source", "schema"), "source, schema", problem)
    expressions = Expressions(spark, source)
    for path, name, text, role in _texts(plan):
        for problem in expressions.problems(text, role) if text else ():
            yield _mistake(plan, path, name, problem)


def _texts(plan: PlanFile) -> Iterator[tuple[KeyPath, str, str, Role]]:
    """Every expression of the file: its path, its label, its text, and its role."""
    for number, rule in enumerate(plan.pipeline.rules):
        at, name = ("rules", number), label("rule", rule.name, number)
        yield (*at, "when"), f"{name}, when", rule.when, WHEN
        yield (*at, "key"), f"{name}, key", rule.key or "", KEY
        for field, text in rule.value.items():
            yield (*at, "value", field), f"{name}, value {field!r}", text, VALUE
    for number, table in enumerate(plan.pipeline.tables):
        name = label("table", table.topic, number)
        for counter, text in table.counters.items():
            yield ("tables", number, "counters", counter), f"{name}, counter {counter!r}", text, COUNTER


def _mistake(plan: PlanFile, path: KeyPath, name: str, problem: Problem) -> Mistake:
    where = f"{name}, column {problem.column}" if problem.column else name
    return Mistake(line=plan.places.line_within(*path, after=problem.after), text=f"{where}: {problem.text}")
