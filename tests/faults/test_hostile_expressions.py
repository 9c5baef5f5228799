"""Every function that Spark knows, in a rule, with odd records between good ones: none of them ends a task.

The list is made of Spark's own registry and its examples, so a function of a new version is tried, too. What
`run --check` refuses is not tried; what makes maps is left to `test_hostile_records`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow
import pytest
from pyspark.sql import Row, SparkSession

from lastword.kafka.client.reading import Columns
from lastword.pipeline.checking.expressions import VALUE, Expressions
from lastword.pipeline.checking.source_fields import source_fields
from lastword.pipeline.evaluation.evaluate import evaluated
from lastword.pipeline.evaluation.guarding import guarded
from lastword.pipeline.plan.plan import Pipeline, Rule, Source
from lastword.pipeline.running.source import SOURCE_SQL, record_batch
from support.hostile_calls import FIELDS, GOOD, MAKES_MAPS, calls_of_all, hostile_records

pytestmark = [pytest.mark.quick, pytest.mark.long]

# In one plan of Spark's.
RULES = 50
# `make soak` tries every function, in several calls; each other run some of them, in one.
IS_SOAK = "LASTWORD_SOAK" in os.environ
EVERY, CALLS, LEAST = (1, 4, 300) if IS_SOAK else (6, 1, 40)


def taken(expressions: Expressions, calls: Sequence[str]) -> Iterator[str]:
    """Those that a pipeline file may have, as fields of a value."""
    for call in calls:
        problems = expressions.problems(call, VALUE)
        if not problems:
            yield call
        # Of a type that JSON does not have.
        elif problems[0].text.startswith("it is ") and not expressions.problems(f"cast({call} AS STRING)", VALUE):
            yield f"cast({call} AS STRING)"


def rows(spark: SparkSession, calls: Sequence[str], values: Sequence[bytes]) -> list[Row]:
    rules = tuple(Rule(name=f"r{n}", when="true", to="t", value={"v": call}) for n, call in enumerate(calls))
    columns = Columns(
        partition=0,
        keys=[b"k"] * len(values),
        values=list(values),
        offsets=list(range(len(values))),
        timestamps=[1] * len(values),
        leader_epoch=0,
    )
    records = spark.createDataFrame(pyarrow.Table.from_batches([record_batch(columns)]), SOURCE_SQL).coalesce(1)
    plan = Pipeline(app="p", source=Source(topic="s", schema=FIELDS), rules=rules, tables=())
    return evaluated(records, plan, ()).collect()


def answers(row: Row, calls: Sequence[str]) -> dict[str, bytes | None]:
    return {call: row[f"value_{number}"] for number, call in enumerate(calls)}


def test_no_function_of_sparks_ends_a_task_or_spoils_the_record_after(spark: SparkSession) -> None:
    session = guarded(spark)
    expressions = Expressions(session, source_fields(session, FIELDS))
    functions = calls_of_all(session, every=EVERY)
    found = {name: [*islice(taken(expressions, calls[: 2 * CALLS]), CALLS)] for name, calls in functions.items()}
    calls = [call for of_name in found.values() for call in of_name if not MAKES_MAPS.search(call)]
    odd = [json.dumps({"id": "odd", **record}).encode() for record in hostile_records()]
    good = json.dumps({"id": "good", **GOOD}).encode()
    between = [value for each in odd for value in (each, good)]

    spoilt, failed = set[str](), 0
    for start in range(0, len(calls), RULES):
        some = calls[start : start + RULES]
        (alone,) = rows(session, some, [good])
        expected = answers(alone, some)
        for row in rows(session, some, between):
            failed += row.failed is not None
            if row.offset % 2:
                spoilt |= {call for call, answer in answers(row, some).items() if answer != expected[call]}

    assert spoilt == set()
    assert failed > 0
    assert sum(map(bool, found.values())) >= LEAST
