"""Spark SQL over topics: a topic is read when a query names it, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import translate

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lastword.core.errors import BadInput
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.spark.query.query_reach import Reach
from lastword.spark.query.statements import Statement, analysed, analysed_inner, parsed
from lastword.spark.reading.offset_range import At, captured_range
from lastword.spark.reading.table import table_of
from lastword.spark.session.failures import one_line, one_line_failures
from lastword.spark.session.pyspark_private import analysed_plan, set_active
from lastword.spark.session.session import connection_of

_QUERY = "the query"
_SUBSTITUTION = "spark.sql.variable.substitute"
_NAME_PART = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the topics of a query are read: with which codecs, by which schemas, and at which position or moment."""

    key: str = "string"
    value: str = "json"
    # By topic; under None the schema of the only topic.
    schemas: Mapping[str | None, str] = field(default_factory=dict)
    at: At = None
    # Whether the query may read files beside topics.
    allow_files: bool = False


@dataclass(frozen=True, kw_only=True)
class QueryResult:
    """The rows of a query, not computed yet, and the position at which each topic in it is read."""

    rows: DataFrame
    positions: Mapping[str, Position]


def answer(spark: SparkSession, query: str, reading: Reading = Reading()) -> QueryResult:  # noqa: B008 - frozen
    """The answer to a query that only reads topics; each topic it names is a view of the session from then on.

    BadInput for anything wrong with the query, NotFound for a name that is neither a topic nor defined in the query.
    """
    reach = Reach(spark=spark, allow_files=reading.allow_files)
    with one_line_failures(_QUERY), _no_substitution(spark):
        statement = parsed(spark, query)
        if statement.tables_pattern is not None:
            return QueryResult(rows=_topics_like(spark, statement.tables_pattern), positions={})
        topics = _Topics(spark, statement, reading)
        reach.check_parsed(statement, topics.known)
        if statement.is_about_query or not statement.is_informational:
            rows = topics.analysed(lambda: (analysed_inner if statement.is_informational else analysed)(spark, query))
            reach.check_analysed(analysed_plan(rows), topics.positions)
        if statement.is_informational:
            rows = topics.analysed(lambda: analysed(spark, query))
    unused = sorted(str(topic) for topic in reading.schemas if topic is not None and topic not in topics.positions)
    if unused:
        raise BadInput(f"--schema {unused[0]}=...: the query reads no topic of that name")
    return QueryResult(rows=rows, positions=topics.positions)


@contextmanager
def _no_substitution(spark: SparkSession) -> Iterator[None]:
    """In the block ${env:NAME}, ${system:NAME} and ${spark.NAME} in a query are plain text."""
    # The parser takes the settings of the active session, also if that is another one.
    set_active(spark)
    before = spark.conf.get(_SUBSTITUTION) or "true"
    spark.conf.set(_SUBSTITUTION, "false")
    try:
        yield
    finally:
        spark.conf.set(_SUBSTITUTION, before)


class _Topics:
    """The topics of one query, made views one by one as Spark finds that it needs them."""

    def __init__(self, spark: SparkSession, statement: Statement, reading: Reading) -> None:
        self._spark = spark
        self._statement = statement
        self._reading = reading
        self._connection: Connection = connection_of(spark)
        self._cluster = self._connection.reach()
        self.positions: dict[str, Position] = {}

    @property
    def known(self) -> Collection[str]:
        """The topics of the cluster."""
        return self._cluster.topics

    def analysed(self, analyse: Callable[[], DataFrame]) -> DataFrame:
        """The result of `analyse`, once every topic that it asks for is a view."""
        while True:
            try:
                return analyse()
            except AnalysisException as failure:
                if failure.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                    raise
                self._add(failure)

    def _add(self, missing: AnalysisException) -> None:
        topic = self._topic_of(missing)
        if topic in self.positions:
            # There is a view of that name, and this kind of statement takes none.
            raise one_line(missing, _QUERY) from None
        self._refuse_namesakes(topic)
        at, schema = self._reading.at, self._reading.schemas.get(topic, self._reading.schemas.get(None))
        if self.positions and (at is not None or None in self._reading.schemas):
            option = "--at" if at is not None else "--schema (without TOPIC=)"
            raise BadInput(
                f"{option} is for a query over one topic, and this one reads {', '.join(self.positions)} too"
            )
        offset_range = captured_range(self._connection, topic, at)
        columns = self._reading.value == "json"
        table = table_of(
            self._spark,
            offset_range,
            key=self._reading.key,
            value=self._reading.value,
            columns=columns,
            schema=schema,
            # The columns are inferred from the rows that are then queried: they are read once for both.
            keep=columns and schema is None,
        )
        table.createOrReplaceTempView(f"`{topic}`")
        self.positions[topic] = offset_range.stop

    def _topic_of(self, missing: AnalysisException) -> str:
        """The topic for a name in the query: the same name, or the only one that differs in case alone."""
        parts = _NAME_PART.findall((missing.getMessageParameters() or {}).get("relationName", ""))
        name, topics = ".".join(part.replace("``", "`") for part in parts), self.known
        if name not in topics:
            alike = [topic for topic in topics if topic.lower() == name.lower()]
            if len(alike) > 1:
                raise BadInput(f"the query: {name} may be any of {', '.join(sorted(alike))}: write it as the topic is")
            name = alike[0] if alike else name
        self._connection.topic_in(self._cluster, name)
        return name

    def _refuse_namesakes(self, topic: str) -> None:
        """Spark takes `Users` and `users` for one table, so a query may name only one of two such topics."""
        for other in sorted(self._statement.relations()):
            if other != topic and other.lower() == topic.lower() and other in self._cluster.topics:
                raise BadInput(
                    f"the query: {topic} and {other} differ only in case, which Spark does not tell apart: "
                    "ask for one of them at a time"
                )


def _topics_like(spark: SparkSession, pattern: str) -> DataFrame:
    """The topics as SHOW TABLES lists tables: `*` stands for any text, `|` for or, and case does not matter."""
    matches = [re.compile(translate(part.strip()), re.IGNORECASE) for part in pattern.split("|")]
    known = sorted(topic for topic in connection_of(spark).reach().topics if not topic.startswith("__"))
    rows = [(topic,) for topic in known if any(match.match(topic) for match in matches)]
    return spark.createDataFrame(rows, "table string")
