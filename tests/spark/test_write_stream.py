"""A stream becomes rows batch by batch; how far it has read is committed to a group, after each batch and no sooner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lastword.api.table import Table
from lastword.core.errors import BadInput, NotFound
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.spark import read_changes, write_table
from support.topic_contents import records_of, state_of
from support.waiting import eventually

NOW = {"availableNow": True}
_LONG_S = 120


@pytest.fixture
def events(connection: Connection, topic_name: str) -> Iterator[Table]:
    """The topic that the streams read, beside the table `users` that they write."""
    create_topic(connection, f"{topic_name}-events", partitions=2)
    with Table(connection, f"{topic_name}-events") as table:
        yield table
    delete_topic(connection, f"{topic_name}-events")


def as_text(records: DataFrame) -> DataFrame:
    return records.select(F.col("key").cast("string"), F.col("value").cast("string"), "offset")


def changes(spark: SparkSession, events: Table) -> DataFrame:
    return as_text(read_changes(spark, events.topic, after=""))


def committed(connection: Connection, group: str, topic: str, partitions: int = 2) -> Position:
    consumer = connection.consumer(group_id=group)
    try:
        places = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=10)
    finally:
        consumer.close()
    return Position({place.partition: place.offset for place in places if place.offset >= 0})


def listeners(spark: SparkSession) -> int:
    return len(spark._jsparkSession.streams().listListeners())


def test_a_stream_is_written_and_its_progress_committed_to_the_group(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    before = listeners(spark)
    group = f"group-of-{users.topic}"
    for number in range(10):
        events.put(f"k{number}", number)
    query = write_table(changes(spark, events), users.topic, checkpoint=tmp_path / "checkpoint", group=group)
    try:
        eventually(lambda: len(state_of(connection, users.topic)) == 10, within_s=_LONG_S)
        eventually(lambda: committed(connection, group, events.topic) == log_bounds(connection, events.topic)[1])
        events.delete("k0")
        events.put("k1", 100)
        eventually(lambda: b"k0" not in state_of(connection, users.topic), within_s=_LONG_S)
        eventually(lambda: committed(connection, group, events.topic) == log_bounds(connection, events.topic)[1])
    finally:
        query.stop()
    assert state_of(connection, users.topic) == state_of(connection, events.topic)
    eventually(lambda: listeners(spark) == before)


def test_a_stream_goes_on_where_its_checkpoint_ended(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    for keys in (["a", "b"], ["c"]):
        for key in keys:
            events.put(key, 1)
        query = write_table(changes(spark, events), users.topic, checkpoint=str(tmp_path / "checkpoint"), trigger=NOW)
        assert query.awaitTermination(_LONG_S)
    assert sorted(record.key or b"" for record in records_of(connection, users.topic)) == [b"a", b"b", b"c"]


def test_an_aggregate_is_written_as_its_rows_change(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    for number, key in enumerate(["a", "b", "a"]):
        events.put(key, number)
    counts = changes(spark, events).groupBy("key").agg(F.count("value").alias("n"), F.max("value").alias("last"))
    query = write_table(counts, users.topic, value=None, checkpoint=tmp_path / "checkpoint", trigger=NOW)
    assert query.awaitTermination(_LONG_S)
    assert state_of(connection, users.topic) == {b"a": b'{"n":2,"last":"2"}', b"b": b'{"n":1,"last":"1"}'}


def test_a_bad_batch_ends_the_query_and_neither_it_nor_its_progress_is_written(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    before, group = listeners(spark), f"group-of-{users.topic}"
    events.put("a", 1)
    nulls = changes(spark, events).withColumn("key", F.expr("nullif(key, 'no key')"))
    query = write_table(nulls, users.topic, checkpoint=tmp_path / "checkpoint", group=group)
    good = log_bounds(connection, events.topic)[1]
    eventually(lambda: committed(connection, group, events.topic) == good, within_s=_LONG_S)
    # In one transaction, so that both are in one batch.
    producer = connection.producer(transactional_id=f"of-{users.topic}")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(events.topic, b"2", b"fine")
    producer.produce(events.topic, b"3", b"no key")
    producer.commit_transaction(30)
    with pytest.raises(StreamingQueryException, match=r"1 row with a null key \(value '3'\)"):
        query.awaitTermination(_LONG_S)
    eventually(lambda: listeners(spark) == before)
    assert state_of(connection, users.topic) == {b"a": b"1"}
    assert committed(connection, group, events.topic) == good


def test_a_key_that_comes_twice_in_a_batch_needs_an_order(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    for value in (1, 2, 3):
        events.put("a", value)
    unordered = write_table(changes(spark, events), users.topic, checkpoint=tmp_path / "unordered", trigger=NOW)
    with pytest.raises(StreamingQueryException, match='1 key comes more than once \\("a" 3 times\\)'):
        unordered.awaitTermination(_LONG_S)
    assert records_of(connection, users.topic) == []
    ordered = write_table(
        changes(spark, events), users.topic, order="offset", checkpoint=tmp_path / "ordered", trigger=NOW
    )
    assert ordered.awaitTermination(_LONG_S)
    assert [record.value for record in records_of(connection, users.topic)] == [b"3"]


def test_a_group_with_members_of_its_own_ends_the_query(
    spark: SparkSession, connection: Connection, users: Table, events: Table, tmp_path: Path
) -> None:
    group = f"group-of-{users.topic}"
    member = connection.consumer(group_id=group, auto_offset_reset="latest")
    member.subscribe([users.topic])
    events.put("a", 1)
    try:
        eventually(lambda: member.poll(0.1) is None and bool(member.assignment()))
        query = write_table(changes(spark, events), users.topic, checkpoint=tmp_path / "checkpoint", group=group)
        eventually(lambda: bool(state_of(connection, users.topic)), within_s=_LONG_S)

        def has_failed() -> bool:
            events.put(f"another after {time.monotonic()}", 2)
            return not query.isActive

        eventually(has_failed, within_s=_LONG_S)
        assert "has members that read and commit: give another name" in str(query.exception())
    finally:
        member.close()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give it as checkpoint"),
        ({"checkpoint": "folder", "mode": "replace"}, "a stream has no end"),
        ({"checkpoint": "folder", "key": "kye"}, "no column 'kye'"),
        ({"checkpoint": "folder", "group": ""}, "the name of the consumer group is empty"),
    ],
)
def test_a_mistake_in_the_call_is_told_before_the_query_starts(
    spark: SparkSession, users: Table, events: Table, options: dict[str, Any], told: str
) -> None:
    before = listeners(spark)
    with pytest.raises(BadInput, match=told):
        write_table(changes(spark, events), users.topic, **options)
    assert spark.streams.active == []
    assert listeners(spark) == before


def test_a_query_that_does_not_start_leaves_no_listener(
    spark: SparkSession, users: Table, events: Table, tmp_path: Path
) -> None:
    before = listeners(spark)
    with pytest.raises(NotFound):
        write_table(changes(spark, events), users.topic + "x", checkpoint=tmp_path, group="g")
    with pytest.raises(Exception, match="output"):
        write_table(changes(spark, events), users.topic, checkpoint=tmp_path, group="g", output_mode="complete")
    assert listeners(spark) == before
