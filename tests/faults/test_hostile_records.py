"""Records that make an expression of a pipeline fail: each is rejected once, and everything around it goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import delete_topic
from lastword.kafka.topics.topic_description import list_topics
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from support.pipelines import header, make_topics, records, running, written
from support.waiting import eventually

# With the tests on Spark in `make test`, and not among those that share the machine.
pytestmark = [pytest.mark.quick, pytest.mark.long]

TEXTS = "id STRING NOT NULL, url STRING, doc STRING, num STRING, xml STRING, pattern STRING, name STRING, long STRING"
SCHEMA = f"{TEXTS}, n INT, at INT, arr ARRAY<INT>"
GOOD: dict[str, Any] = {
    "url": "a%20b",
    "doc": "{}",
    "num": "12",
    "xml": "<a><b>1</b></a>",
    "pattern": "g.*",
    "name": "a",
    "long": "abab",
    "n": 0,
    "at": 1,
    "arr": [1],
}
CONDITIONS = {
    "every": "true",
    "admin": "contains(url_decode(url), 'admin')",
    # What it shares with the rule before must not be computed ahead of both.
    "admins": "startswith(url_decode(url), 'admin')",
    "first": "element_at(arr, at) = 7",
    "doc": "cast(parse_json(doc) AS STRING) = 'x'",
    "number": "to_number(num, '99') > 50",
    "xml": "xpath_int(xml, 'a/b') > 50",
    "like": "NOT id RLIKE pattern",
    "sum": "n + 2147483647 < 0",
    "ratio": "10 / (n - 5) > 20",
    # What makes maps is not tried, and a stack that runs out is nothing that could be caught: these fail tasks.
    "map": "size(map_from_arrays(array(name, 'x'), array(1, 2))) = 3",
    "stack": "NOT long RLIKE '^(a|b)*$'",
}
# What a poisonous record has otherwise, and the beginning of the reason.
CANT = "it can't be computed: "
POISON: dict[str, tuple[dict[str, Any], str]] = {
    "url": ({"url": "50%ZZ off"}, "rule admin, when: contains(url_decode(url), 'admin'); rule admins, when: starts"),
    "index": ({"at": 0}, "rule first, when: element_at(arr, at) = 7"),
    "doc": ({"doc": '{"a":'}, "rule doc, when: cast(parse_json(doc) AS STRING) = 'x'"),
    "number": ({"num": "many"}, "rule number, when: to_number(num, '99') > 50"),
    "xml": ({"xml": "<a"}, "rule xml, when: xpath_int(xml, 'a/b') > 50"),
    "pattern": ({"pattern": "["}, "rule like, when: NOT id RLIKE pattern"),
    "sum": ({"n": 1}, "rule sum, when: n + 2147483647 < 0"),
    "zero": ({"n": 5}, "rule sum, when: n + 2147483647 < 0; rule ratio, when: 10 / (n - 5) > 20"),
    "key": ({"name": "x"}, "Duplicate map key x was found"),
    "stack": ({"long": "ab" * 20_000}, "it ends a task of Spark's: java.lang.StackOverflowError"),
}


def hostile_pipeline(name: str) -> Pipeline:
    rules = [Rule(name=rule, when=when, to=f"{name}-actions", value={"id": "id"}) for rule, when in CONDITIONS.items()]
    table = KeptTable(topic=f"{name}-stats", key="rule", counters={"seen": "1", "sum": "if(matched, n + 1, 0)"})
    return Pipeline(app=name, source=Source(topic=f"{name}-users", schema=SCHEMA), rules=tuple(rules), tables=(table,))


@pytest.fixture
def plan(connection: Connection, topic_name: str) -> Iterator[Pipeline]:
    made = hostile_pipeline(topic_name)
    make_topics(connection, made, partitions=2)
    yield made
    for topic in list_topics(connection):
        if topic.name.startswith(topic_name):
            delete_topic(connection, topic.name)


def produce(connection: Connection, plan: Pipeline, batch: str, poison: list[str]) -> list[str]:
    """Gives the names of good records, and after every third of them there is a poisonous one."""
    producer, names = connection.producer(), []
    for number, kind in enumerate(poison):
        for good in range(3):
            names.append(f"good-{batch}-{number}-{good}")
            value = json.dumps({"id": names[-1], **GOOD}).encode()
            producer.produce(plan.source.topic, value, partition=(number + good) % 2)
        value = json.dumps({"id": kind, **GOOD, **POISON[kind][0]}).encode()
        producer.produce(plan.source.topic, value, partition=number % 2)
    producer.flush()
    return names


def actions(connection: Connection, plan: Pipeline) -> Counter[str]:
    return Counter(str(json.loads(r.value or b"")["id"]) for r in records(connection, plan.rules[0].to))


def rejects(connection: Connection, plan: Pipeline) -> Counter[tuple[str, str]]:
    found = records(connection, plan.rejects)
    return Counter((str(json.loads(r.value or b"")["id"]), header(r, "reason")) for r in found)


def counted(connection: Connection, plan: Pipeline) -> list[tuple[int, int]]:
    """Of each rule: how many records it has seen, and one for each match."""
    rows = written(connection, plan).tables[plan.tables[0].topic]
    return [(rows[rule.name]["seen"], rows[rule.name]["sum"]) for rule in plan.rules] if rows else []


def test_a_poisonous_record_is_rejected_once_and_everything_around_it_goes_on(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    *tried, key, stack = POISON

    def outcome() -> tuple[Counter[str], Counter[str], list[tuple[int, int]]]:
        names = Counter(name for name, _ in rejects(connection, plan).elements())
        return actions(connection, plan), names, counted(connection, plan)

    def settles(good: list[str], bad: list[str]) -> None:
        """Every good record has its action and is counted, every bad one is rejected, and all that only once."""
        others = [(len(good), 0)] * (len(plan.rules) - 1)
        expected = Counter(good), Counter(bad), [(len(good), len(good)), *others]
        try:
            eventually(lambda: outcome() == expected, within_s=120)
        except AssertionError:
            assert outcome() == expected

    good = produce(connection, plan, "a", tried)
    with running(spark, plan):
        settles(good, tried)
        good += produce(connection, plan, "b", [key])
        settles(good, [*tried, key])
    good += produce(connection, plan, "c", ["sum", stack])
    with running(spark, plan):
        settles(good, [*tried, key, "sum", stack])

    reasons = dict(rejects(connection, plan).elements())
    wrong = {name: reasons[name] for name in POISON if not reasons[name].startswith(f"{CANT}{POISON[name][1]}")}
    assert wrong == {}
