"""Every rule's verdict on every record, from Spark's JVM."""

from __future__ import annotations

import json
from typing import Any

import pyarrow
import pytest
from pyspark.sql import Row, SparkSession

from lastword.kafka.reading import Columns
from lastword.pipeline.evaluation import Counter, counters_of, evaluated, fields_of, increment_of, key_of, value_of
from lastword.pipeline.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.source import SOURCE_SQL, record_batch
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
    columns = Columns(
        partition=0,
        keys=[b"k"] * len(values),
        values=list(values),
        offsets=list(range(len(values))),
        timestamps=[1] * len(values),
        leader_epoch=0,
    )
    records = spark.createDataFrame(pyarrow.Table.from_batches([record_batch(columns)]), SOURCE_SQL)
    return evaluated(records, plan, counters_of(spark, plan)).orderBy("offset").collect()


def emitted(row: Row) -> list[tuple[int, bytes | None, Any]]:
    found = row.asDict()
    made = [
        (rule, found.get(key_of(rule)), found[value_of(rule)])
        for rule in range(len(PLAN.rules))
        if found.get(value_of(rule))
    ]
    return [(rule, key and bytes(key), json.loads(bytes(value))) for rule, key, value in made]


def increments(row: Row) -> list[int]:
    return [row[increment_of(number)] for number in range(3)]


def fault(row: Row) -> str | None:
    if not row.doubt:
        return None
    value = None if row.value is None else bytes(row.value)
    fields = fields_of(PLAN)
    unread = [fields[int(number)].name for number in row.unread.split(",") if number]
    return fault_of(value, fields, unread=unread, is_readable=row.readable)


def test_a_record_emits_one_record_for_each_rule_that_holds(lenient: SparkSession) -> None:
    both, none = rows(lenient, PLAN, b'{"name": "Ada", "credit": -5, "note": "!"}', b'{"name": "Bo", "credit": 0}')

    assert emitted(both) == [
        (0, None, {"who": "Ada", "rule": "debt"}),
        (1, None, {"who": "Ada", "rule": "ada"}),
        (2, b"Ada", {"note": "!", "tenth": -0.5}),
    ]
    assert increments(both) == [-5, -5, -5]
    assert (both.doubt, both.key, both.value) == (False, None, None)
    assert (emitted(none), increments(none)) == ([], [0, 0, 0])


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
    assert increments(row) == [0, int(json.loads(value)["name"] == "Ada"), 0]


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


def test_names_and_texts_of_any_kind_mean_what_they_say(lenient: SparkSession) -> None:
    odd = 'it\'s `a` \\ "b".c'
    name = "`" + odd.replace("`", "``") + "`"
    plan = Pipeline(
        app="p",
        source=Source(topic="s", schema=f"{name} STRING NOT NULL, -- the odd one\n n INT -- the last \\"),
        rules=(
            Rule(
                name="r.1",
                when=f"{name} = 'x' -- a comment \\",
                to="t",
                key=f"{name} -- one more",
                value={odd: f"{name} /* and */ -- another", "rule": "rule"},
            ),
        ),
        tables=(KeptTable(topic="sums", key="rule", counters={"n": "if(matched, n, 0) -- so much"}),),
    )
    match, miss, rejected = rows(
        lenient,
        plan,
        json.dumps({odd: "x", "n": 3}).encode(),
        json.dumps({odd: "5", "n": 4}).encode(),
        json.dumps({odd: 5}).encode(),
    )

    assert (bytes(match.key_0), json.loads(bytes(match.value_0))) == (b"x", {odd: "x", "rule": "r.1"})
    assert (match.doubt, match.increment_0) == (False, 3)
    assert (miss.value_0, miss.increment_0) == (None, 0)
    assert rejected.doubt
    assert fault_of(bytes(rejected.value), fields_of(plan), unread=[], is_readable=True) == (
        f"of the wrong type: {odd} (not STRING)"
    )
