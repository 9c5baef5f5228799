"""Every rule's verdict on every record, from Spark's JVM."""

from __future__ import annotations

import json
import socket
from typing import Any

import pyarrow
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from lastword.kafka.client.reading import Columns
from lastword.pipeline.evaluation.evaluate import (
    Counter,
    counters_of,
    evaluated,
    fields_of,
    increment_of,
    key_of,
    parts_of,
    value_of,
)
from lastword.pipeline.evaluation.guarding import guarded
from lastword.pipeline.evaluation.verdicts import fault_of
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.running.source import SOURCE_SQL, record_batch
from support.pipelines import small_pipeline

NO_JSON = "its value is not JSON"
PLAN = small_pipeline("p")
LEAST_INDEX = "element_at(array(1), if(credit = 0, int(-2147483648), 1)) = 2"
LEAST_INDEX_BY_NAME = LEAST_INDEX.replace("element_at", "IDENTIFIER('element_' || 'at')")
DAY, DAYS, LARGE = "DATE'2026-01-01'", "if(credit = 0, 2147483647, 1)", "if(credit = 0, 1e300D, 1D)"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return guarded(spark)


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


def fault(row: Row, plan: Pipeline = PLAN) -> str | None:
    if not row.doubt and row.failed is None:
        return None
    value = None if row.value is None else bytes(row.value)
    fields, parts = fields_of(plan), parts_of(plan, ())
    unread = [fields[int(number)].name for number in (row.unread or "").split(",") if number]
    failed = [parts[int(number)] for number in (row.failed or "").split(",") if number]
    return fault_of(value, fields, unread=unread, failed=failed, is_readable=row.readable)


def test_a_record_emits_one_record_for_each_rule_that_holds(session: SparkSession) -> None:
    both, none = rows(session, PLAN, b'{"name": "Ada", "credit": -5, "note": "!"}', b'{"name": "Bo", "credit": 0}')

    assert emitted(both) == [
        (0, None, {"who": "Ada", "rule": "debt"}),
        (1, None, {"who": "Ada", "rule": "ada"}),
        (2, b"Ada", {"note": "!", "tenth": -0.5}),
    ]
    assert increments(both) == [-5, -5, -5]
    assert (both.doubt, both.key, both.value) == (False, None, None)
    assert (emitted(none), increments(none)) == ([], [0, 0, 0])


def test_counters_that_need_no_field_are_counted_without_one(session: SparkSession) -> None:
    counters = counters_of(session, PLAN)

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
    session: SparkSession, value: bytes | None, reason: str
) -> None:
    (row,) = rows(session, PLAN, value)

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
def test_what_looks_odd_and_is_right_is_valid(session: SparkSession, value: bytes) -> None:
    (row,) = rows(session, PLAN, value)

    assert fault(row) is None
    assert increments(row) == [0, int(json.loads(value)["name"] == "Ada"), 0]


def rules(*conditions: str, value: str = "1") -> Pipeline:
    """A rule for each condition over the source of these tests."""
    made = [Rule(name=f"r{n}", when=text, to="t", value={"n": value}) for n, text in enumerate(conditions)]
    return Pipeline(app="p", source=PLAN.source, rules=tuple(made), tables=())


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("10 / credit > 1", "rule r0, when: 10 / credit > 1"),
        ("credit + 2147483647 > 0", None),
        ("credit + 1 + 2147483647 > 0", "rule r0, when: credit + 1 + 2147483647 > 0"),
        ("cast(name AS INT) > 0", "rule r0, when: cast(name AS INT) > 0"),
        ("try_cast(name AS INT) > 0 OR try_divide(1, credit) > 0", None),
        ("nullif(url_decode(note), 'a') = 'b'", "rule r0, when: nullif(url_decode(note), 'a') = 'b'"),
        ("url_decode(note) BETWEEN 'a' AND 'b'", "rule r0, when: url_decode(note) BETWEEN 'a' AND 'b'"),
        (
            "CASE WHEN url_decode(note) = 'a' THEN true END",
            "rule r0, when: CASE WHEN url_decode(note) = 'a' THEN true END",
        ),
        ("if(credit = 0, true, url_decode(note) = 'a')", None),
        # Of Spark itself it would read memory that is not its own.
        (LEAST_INDEX, f"rule r0, when: {LEAST_INDEX}"),
        (LEAST_INDEX_BY_NAME, f"rule r0, when: {LEAST_INDEX_BY_NAME}"),
        # Days wrap in Spark, and what is too large is rounded to the largest BIGINT.
        (f"date_add({DAY}, {DAYS}) > {DAY}", f"rule r0, when: date_add({DAY}, {DAYS}) > {DAY}"),
        (f"{DAY} + {DAYS} > {DAY}", f"rule r0, when: {DAY} + {DAYS} > {DAY}"),
        (f"date_sub({DAY}, -{DAYS}) > {DAY}", f"rule r0, when: date_sub({DAY}, -{DAYS}) > {DAY}"),
        (f"ceil({LARGE}) > 0", f"rule r0, when: ceil({LARGE}) > 0"),
        (f"floor(-{LARGE}) < 0", f"rule r0, when: floor(-{LARGE}) < 0"),
        (f"date_add({DAY}, if(credit = 0, NULL, 1)) > {DAY}", None),
    ],
)
def test_an_answer_is_right_or_the_record_is_rejected(session: SparkSession, when: str, reason: str | None) -> None:
    plan = rules(when, "true")
    good, odd, after = rows(
        session,
        plan,
        b'{"name": "1", "credit": -1, "note": "a"}',
        b'{"name": "Ada", "credit": 0, "note": "50%ZZ off"}',
        b'{"name": "1", "credit": -1, "note": "a"}',
    )

    assert fault(odd, plan) == (None if reason is None else f"it can't be computed: {reason}")
    assert (fault(good, plan), fault(after, plan)) == (None, None)
    assert good.value_1 == after.value_1 == b'{"n":1}'


@pytest.mark.parametrize(
    "function", ["map_from_entries", "map_from_entries /* */", "IDENTIFIER('map_from_' || 'entries')"]
)
def test_what_makes_maps_is_not_tried_however_it_is_written(session: SparkSession, function: str) -> None:
    # It would keep the keys of a map that it gave up, and give them to the next record.
    plan = rules(f"{function}(array(struct('a', 1), struct(if(credit = 0, 'a', 'b'), 2)))['b'] = 2")
    good, odd = b'{"name": "1", "credit": -1}', b'{"name": "1", "credit": 0}'

    with pytest.raises(PySparkException, match="DUPLICATED_MAP_KEY"):
        rows(session, plan, odd, good)
    assert [row.value_0 for row in rows(session, plan, good, good)] == [b'{"n":1}'] * 2


def test_a_value_in_xml_makes_nobody_ask_for_what_it_names(session: SparkSession) -> None:
    plan = rules("xpath_string(note, 'a') = 'b'", "true")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        document = f'<!DOCTYPE a SYSTEM "http://127.0.0.1:{listener.getsockname()[1]}/x"><a>b</a>'
        values = [json.dumps({"name": "1", "credit": 1, "note": note}).encode() for note in ("<a>b</a>", document)]
        good, odd = rows(session, plan, *values)
        with pytest.raises(TimeoutError):
            listener.accept()

    assert (good.value_0, fault(good, plan)) == (b'{"n":1}', None)
    assert fault(odd, plan) == "it can't be computed: rule r0, when: xpath_string(note, 'a') = 'b'"


def test_names_and_texts_of_any_kind_mean_what_they_say(session: SparkSession) -> None:
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
        session,
        plan,
        json.dumps({odd: "x", "n": 3}).encode(),
        json.dumps({odd: "5", "n": 4}).encode(),
        json.dumps({odd: 5}).encode(),
    )

    assert (bytes(match.key_0), json.loads(bytes(match.value_0))) == (b"x", {odd: "x", "rule": "r.1"})
    assert (match.doubt, match.increment_0) == (False, 3)
    assert (miss.value_0, miss.increment_0) == (None, 0)
    assert rejected.doubt
    assert fault_of(bytes(rejected.value), fields_of(plan), unread=[], failed=[], is_readable=True) == (
        f"of the wrong type: {odd} (not STRING)"
    )
