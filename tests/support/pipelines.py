"""Small pipelines, and the results they must have written, recounted from their source."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lastword.core.errors import NotFound
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.kafka.topics.topic_changes import create_topic
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.running.driver import PipelineRun

SCHEMA = "name STRING NOT NULL, credit INT NOT NULL, note STRING"
# The rules below, in Python.
CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "debt": lambda user: user["credit"] < 0,
    "ada": lambda user: user["name"] == "Ada",
    "noted": lambda user: (user.get("note") or "").startswith("!"),
}


def small_pipeline(name: str) -> Pipeline:
    """Three rules over `NAME-users`; its topics all start with the name."""
    return Pipeline(
        app=name,
        source=Source(topic=f"{name}-users", schema=SCHEMA),
        rules=(
            Rule(name="debt", when="credit < 0", to=f"{name}-actions", value={"who": "name", "rule": "rule"}),
            Rule(name="ada", when="name = 'Ada'", to=f"{name}-actions", value={"who": "name", "rule": "rule"}),
            Rule(
                name="noted",
                when="startswith(note, '!')",
                to=f"{name}-notes",
                key="name",
                value={"note": "note", "tenth": "credit / 10"},
            ),
        ),
        tables=(
            KeptTable(topic=f"{name}-stats", key="rule", counters={"seen": "1", "flagged": "if(matched, 1, 0)"}),
            KeptTable(topic=f"{name}-sums", key="rule", counters={"credit": "if(matched, credit, 0)"}),
        ),
    )


def some_user(number: int) -> bytes:
    """A user, always the same for a number."""
    chance = random.Random(number)
    user: dict[str, Any] = {"name": chance.choice(["Ada", "Bo", "Cy"]), "credit": chance.randint(-20, 19)}
    if chance.random() < 0.3:
        user["note"] = chance.choice(["!now", "later", None])
    return json.dumps(user).encode()


def make_topics(connection: Connection, plan: Pipeline, *, partitions: int = 3) -> None:
    create_topic(connection, plan.source.topic, partitions=partitions, settings={"cleanup.policy": "delete"})
    for topic in sorted({rule.to for rule in plan.rules}):
        create_topic(connection, topic, partitions=2, settings={"cleanup.policy": "delete"})
    for table in plan.tables:
        create_topic(connection, table.topic, partitions=2)


def records(connection: Connection, topic: str) -> list[Record]:
    """The committed ones; none while the topic is not made yet."""
    try:
        return [record for batch in read_log(connection, topic) for record in batch]
    except NotFound:
        return []


@dataclass(frozen=True)
class Outcome:
    """The results of a pipeline, or the results it should have."""

    matches: Counter[tuple[str, str]]  # by the place in the source, and the rule
    rejects: Counter[str]
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]]


def header(record: Record, name: str) -> str:
    return (dict(record.headers)[name] or b"").decode()


def written(connection: Connection, plan: Pipeline) -> Outcome:
    matches: Counter[tuple[str, str]] = Counter()
    for topic in {rule.to for rule in plan.rules}:
        matches.update((header(r, "source"), header(r, "rule")) for r in records(connection, topic))
    rejects = Counter(header(r, "source") for r in records(connection, plan.rejects))
    tables: dict[str, dict[str, Any]] = {}
    for table in plan.tables:
        rows = tables[table.topic] = {}
        # In one partition a key's last record is its newest, and a key has one partition.
        for record in records(connection, table.topic):
            rows[(record.key or b"").decode()] = json.loads(record.value or b"null")
    return Outcome(matches, rejects, tables)


def recounted(connection: Connection, plan: Pipeline) -> Outcome:
    """The results that the source requires: each record judged by Python, without Spark."""
    matches: Counter[tuple[str, str]] = Counter()
    rejects: Counter[str] = Counter()
    seen, credit = 0, Counter[str]()
    for record in records(connection, plan.source.topic):
        place = f"{plan.source.topic}/{record.partition}/{record.offset}"
        user = _user(record.value)
        if user is None:
            rejects[place] += 1
            continue
        seen += 1
        for rule, holds in CONDITIONS.items():
            if holds(user):
                matches[place, rule] += 1
                credit[rule] += user["credit"]
    flagged = Counter(rule for _, rule in matches)
    stats = {rule: {"rule": rule, "seen": seen, "flagged": flagged[rule]} for rule in CONDITIONS}
    sums = {rule: {"rule": rule, "credit": credit[rule]} for rule in CONDITIONS}
    return Outcome(matches, rejects, {plan.tables[0].topic: stats, plan.tables[1].topic: sums})


def _user(value: bytes | None) -> dict[str, Any] | None:
    try:
        user = json.loads(value or b"")
    except ValueError:
        return None
    is_right = isinstance(user, dict) and isinstance(user.get("name"), str) and type(user.get("credit")) is int
    return user if is_right else None


class RunningPipeline:
    """A pipeline in a thread."""

    def __init__(self, run: PipelineRun) -> None:
        self._run = run
        self._thread = threading.Thread(target=self._go)
        self._failure: BaseException | None = None
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        """Stops the pipeline, and raises the error that had ended it before."""
        self._run.stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _go(self) -> None:
        try:
            self._run.run()
        except BaseException as failure:
            self._failure = failure


@contextmanager
def running(spark: SparkSession, plan: Pipeline, **options: Any) -> Iterator[RunningPipeline]:
    """The pipeline until the block ends; an error that ended it before is raised then."""
    run = RunningPipeline(PipelineRun(spark, plan, **options))
    try:
        yield run
    finally:
        run.end()
