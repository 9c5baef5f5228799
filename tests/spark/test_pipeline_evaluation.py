"""Every rule's verdict on every record, from Spark's JVM."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lastword.pipeline.evaluation import Counter, counters_of, evaluated, fields_of
from lastword.pipeline.plan import Pipeline
from lastword.pipeline.verdicts import fault_of
from support.pipelines import small_pipeline

NO_JSON = "its value is not JSON"
PLAN = small_pipeline("p")


@pytest.fixture
def lenient(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    made.conf.set("spark.sql.ansi.enabled", "false")
    return made


def rows(spark: SparkSession, plan: Pipeline, *values: bytes | None) -> list[Row]:
    records = spark.createDataFrame(
        [(b"k", value, 0, number) for number, value in enumerate(values)],
        "key binary, value binary, partition int, offset bigint",
    ).selectExpr("*", "timestamp_millis(offset) AS timestamp")
    return evaluated(records, plan, counters_of(spark, plan)).orderBy("offset").collect()


def emitted(row: Row) -> list[tuple[int, bytes | None, Any]]:
    return [(each.rule, each.key and bytes(each.key), json.loads(bytes(each.value))) for each in row.emitted]


def fault(row: Row) -> str | None:
    if not row.doubt:
        return None
    value = None if row.value is None else bytes(row.value)
    return fault_of(value, fields_of(PLAN), unread=row.unread, is_readable=row.emitted is not None)


def test_a_record_emits_one_record_for_each_rule_that_holds(lenient: SparkSession) -> None:
    both, none = rows(lenient, PLAN, b'{"name": "Ada", "credit": -5, "note": "!"}', b'{"name": "Bo", "credit": 0}')

    assert emitted(both) == [
        (0, None, {"who": "Ada", "rule": "debt"}),
        (1, None, {"who": "Ada", "rule": "ada"}),
        (2, b"Ada", {"note": "!", "tenth": -0.5}),
    ]
    assert list(both.increments) == [-5, -5, -5]
    assert (both.doubt, both.key, both.value) == (False, None, None)
    assert (emitted(none), list(none.increments)) == ([], [0, 0, 0])


def test_counters_that_need_no_field_are_counted_without_one(lenient: SparkSession) -> None:
    counters = counters_of(lenient, PLAN)

    assert counters[:3] == tuple(
        Counter(table="p-stats", rule=rule, name="seen", when_matched=1, when_missed=1) for rule in range(3)
    )
    assert counters[3:6] == tuple(
        Counter(table="p-stats", rule=rule, name="flagged", when_matched=1, when_missed=0) for rule in range(3)
    )
    assert counters[6:] == tuple(Counter(table="p-sums", rule=rule, name="credit", increment=rule) for rule in range(3))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "it has no value"),
        (b"", NO_JSON),
        (b"{", NO_JSON),
        (b'{"name": "Ada", "credit": 1} x', NO_JSON),
        (b'{"name": "Ada", "credit": 1}{}', NO_JSON),
        (b'{"name": "Ada", "credit": 1},{}', NO_JSON),
        (b'{"name": "Ada", "credit": 1}]', NO_JSON),
        (b'{"name": "Ada", "credit": 1}}', NO_JSON),
        (b'{"name": "Ada", "credit": 01}', NO_JSON),
        (b"{'name': 'Ada', 'credit': 1}", NO_JSON),
        (b'{"name": "Ada", "credit": NaN}', NO_JSON),
        (b'{"name": "\xff", "credit": 1}', "its value is not UTF-8 text"),
        (b'{"credit": "1"}', "missing or null: name; of the wrong type: credit (not INT)"),
        (b"\xff\xfe", "its value is not UTF-8 text"),
        (b"null", "its value is not a JSON object"),
        (b"[1]", "its value is not a JSON object"),
        (b'[{"name": "Ada", "credit": 1}]', "its value is not a JSON object"),
        (b'"text"', "its value is not a JSON object"),
        (b"{}", "missing or null: name, credit"),
        (b'{"name": "Ada"}', "missing or null: credit"),
        (b'{"name": null, "credit": 1}', "missing or null: name"),
        (b'{"name": "Ada", "credit": "1"}', "of the wrong type: credit (not INT)"),
        (b'{"name": "Ada", "credit": 1.5}', "of the wrong type: credit (not INT)"),
        (b'{"name": "Ada", "credit": 99999999999}', "of the wrong type: credit (not INT)"),
        (b'{"name": "Ada", "credit": {}}', "of the wrong type: credit (not INT)"),
        (b'{"name": 5, "credit": 1}', "of the wrong type: name (not STRING)"),
        (b'{"name": {"first": "Ada"}, "credit": 1}', "of the wrong type: name (not STRING)"),
        (b'{"name": "Ada", "credit": 1, "note": 5}', "of the wrong type: note (not STRING)"),
    ],
)
def test_a_record_that_does_not_fit_is_rejected_with_the_reason(
    lenient: SparkSession, value: bytes | None, reason: str
) -> None:
    (row,) = rows(lenient, PLAN, value)

    assert fault(row) == reason
    assert (bytes(row.key), row.value if value is None else bytes(row.value)) == (b"k", value)


@pytest.mark.parametrize(
    "value",
    [
        b'{"name": "Ada", "credit": 1}\n',
        b' {"name": "Ada", "credit": 1, "more": {"a": [{}]}} ',
        b'{"name": "A}d{a", "credit": 1, "note": null}',
        b'{"name": "\\"note\\": 5", "credit": 1}',
        b'{"note": "n", "credit": 1, "name" : "Ada"}',
    ],
)
def test_what_looks_odd_and_is_right_is_valid(lenient: SparkSession, value: bytes) -> None:
    (row,) = rows(lenient, PLAN, value)

    assert fault(row) is None
    assert list(row.increments) == [0, int(json.loads(value)["name"] == "Ada"), 0]


def test_what_can_not_be_computed_is_null_and_stops_nothing(lenient: SparkSession) -> None:
    rule = PLAN.rules[0]
    plan = Pipeline(
        app="p",
        source=PLAN.source,
        rules=(
            type(rule)(name="zero", when="10 / credit > 1", to="t", value={"n": "1"}),
            type(rule)(name="number", when="credit = 0", to="t", value={"n": "cast(name AS INT)"}),
        ),
        tables=(),
    )
    (row,) = rows(lenient, plan, b'{"name": "Ada", "credit": 0}')

    assert emitted(row) == [(1, None, {"n": None})]
