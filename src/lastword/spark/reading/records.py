"""A topic's records in Spark, as its Kafka connector reads them: up to a position, or from one on without end."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from lastword.core.position import Position
from lastword.kafka.client.bounded_read import begin_of, refuse_unknown_partitions
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.spark.reading.offset_range import At, captured_range
from lastword.spark.reading.packed_rows import HEADERS_TYPE
from lastword.spark.session.client_settings import java_settings
from lastword.spark.session.session import connection_of

HEADERS = "headers"
RECORD_SCHEMA = f"key binary, value binary, partition int, offset bigint, timestamp timestamp, headers {HEADERS_TYPE}"
_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "headers")
# The connector's name for the log start.
_EARLIEST = -2


def read_records(spark: SparkSession, topic: str, *, at: At = None) -> DataFrame:
    """The committed records from the log's start up to `at`, a tombstone with a null value; nothing is folded."""
    connection = connection_of(spark)
    offset_range = captured_range(connection, topic, at)
    if not offset_range.partitions:
        return spark.createDataFrame([], RECORD_SCHEMA)
    reader = spark.read.format("kafka").options(**source_options(connection))
    reader = reader.option("assign", json.dumps({topic: offset_range.partitions}))
    reader = reader.option("startingOffsets", _offsets(topic, dict.fromkeys(offset_range.partitions, _EARLIEST)))
    reader = reader.option("endingOffsets", _offsets(topic, {p: offset_range.stop[p] for p in offset_range.partitions}))
    return reader.load().select(*_COLUMNS)


def read_changes(spark: SparkSession, topic: str, *, after: Position | str | None = None) -> DataFrame:
    """The stream of committed records after a position, or from now on; a partition it does not name from its start."""
    connection = connection_of(spark)
    first, last = log_bounds(connection, topic)
    if after is None:
        begins = dict(last)
    else:
        start = Position.parse(after) if isinstance(after, str) else after
        refuse_unknown_partitions(topic, start, last)
        begins = {p: begin_of(topic, p, first[p], last[p], start) for p in last}
    reader = spark.readStream.format("kafka").options(**source_options(connection))
    reader = reader.option("subscribe", topic).option("startingOffsets", _offsets(topic, begins))
    return reader.load().select(*_COLUMNS)


def source_options(connection: Connection) -> dict[str, str]:
    """The connector's options for every read of a cluster."""
    ours = {
        "isolation.level": "read_committed",
        # Of a topic that was deleted meanwhile a reader must not make another.
        "allow.auto.create.topics": "false",
        # How long a fetch waits at the end of the log. The default, half a second, is most of a small read.
        "fetch.max.wait.ms": "10",
        # Worth a fifth of the time of a scan.
        "max.poll.records": "50000",
    }
    client = {**ours, **java_settings(connection).options}
    return {"includeHeaders": "true", **{f"kafka.{name}": value for name, value in client.items()}}


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in offsets.items()}})


def has_headers(frame: DataFrame) -> bool:
    """Whether the frame has a column of that name and of the connector's type."""
    return HEADERS in frame.columns and frame.schema[HEADERS].dataType.simpleString() == HEADERS_TYPE
