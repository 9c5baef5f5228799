"""A table becomes exactly a frame: what is the same is not written, and what is gone is deleted where it lives."""

from __future__ import annotations

import random

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from lastword.api.table import Table
from lastword.core.errors import BadInput
from lastword.core.key_partition import partition_of
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_topic
from lastword.spark import Written, read_table, write_table
from lastword.spark.writing.replacing import differences
from support.topic_contents import records_of, state_of


def text(spark: SparkSession, rows: dict[str, str | None]) -> DataFrame:
    return spark.createDataFrame(list(rows.items()), "key string, value string")


def test_new_and_changed_rows_are_written_and_missing_keys_deleted(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    for key, value in [("same", 1), ("changed", 1), ("gone", 1), ("deleted before", 1)]:
        users.put(key, value)
    users.delete("deleted before")
    before = log_bounds(connection, users.topic)[1]
    rows: dict[str, str | None] = {"same": "1", "changed": "2", "new": "3", "never there": None}
    written = write_table(text(spark, rows), users.topic, mode="replace")
    assert written == Written(puts=2, tombstones=1, unchanged=1, against=before)
    assert state_of(connection, users.topic) == {b"same": b"1", b"changed": b"2", b"new": b"3"}
    assert len(records_of(connection, users.topic)) == 5 + 3


@pytest.mark.quick
def test_the_second_time_nothing_is_written(spark: SparkSession, connection: Connection, users: Table) -> None:
    frame = spark.range(50).selectExpr(
        "concat('k', id) as key", "named_struct('n', id, 'none', cast(null as int)) value"
    )
    assert write_table(frame, users.topic, mode="replace").puts == 50
    before = records_of(connection, users.topic)
    again = write_table(frame, users.topic, mode="replace")
    assert (again.puts, again.tombstones, again.unchanged) == (0, 0, 50)
    assert records_of(connection, users.topic) == before


def test_an_empty_frame_empties_the_table_and_an_empty_table_is_filled(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    filled = write_table(text(spark, {"a": "1", "b": "2"}), users.topic, mode="replace")
    assert (filled.puts, filled.against) == (2, Position({0: 0, 1: 0, 2: 0}))
    emptied = write_table(text(spark, {}), users.topic, mode="replace")
    assert (emptied.puts, emptied.tombstones) == (0, 2)
    assert state_of(connection, users.topic) == {}


def test_it_is_compared_with_the_table_at_the_position_that_is_given(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    users.put("a", 1)
    position = log_bounds(connection, users.topic)[1]
    users.put("a", 2)
    users.put("by another", 3)
    written = write_table(text(spark, {"a": "1"}), users.topic, mode="replace", at=position)
    assert written == Written(puts=0, tombstones=0, unchanged=1, against=position)
    # What came after the position was not looked at.
    assert state_of(connection, users.topic) == {b"a": b"2", b"by another": b"3"}


def test_a_table_read_and_changed_is_written_back_as_a_difference(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    users.put_many([(f"user-{number}", {"n": number}) for number in range(20)])
    kept = read_table(spark, users.topic).where("get_json_object(value, '$.n') < 15")
    written = write_table(kept, users.topic, mode="replace")
    assert (written.puts, written.tombstones, written.unchanged) == (0, 5, 15)
    assert users.count() == 15


def test_headers_come_with_the_rows_that_are_written(spark: SparkSession, connection: Connection, users: Table) -> None:
    users.put("gone", 1)
    rows = spark.createDataFrame(
        [("a", "1", [("h", b"1")])], "key string, value string, headers array<struct<key: string, value: binary>>"
    )
    write_table(rows, users.topic, mode="replace")
    assert {record.key: record.headers for record in records_of(connection, users.topic) if record.value == b"1"} == {
        b"gone": (),
        b"a": (("h", b"1"),),
    }


@pytest.mark.parametrize("rows", [[(None, "1")], [("b", "oops")], [("b", "1"), ("b", "2")]])
def test_what_is_refused_leaves_the_table_as_it_is(
    spark: SparkSession, connection: Connection, users: Table, rows: list[tuple[str | None, str]]
) -> None:
    users.put("a", 1)
    with pytest.raises(BadInput, match="nothing was written"):
        write_table(spark.createDataFrame(rows, "key string, value string"), users.topic, mode="replace")
    assert len(records_of(connection, users.topic)) == 1


def test_rows_outside_their_partition_are_deleted_where_they_live(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=3)
    stray = Producer({"bootstrap.servers": connection.bootstrap_servers})
    home = {key: partition_of(key.encode(), 3) for key in ("same", "changed", "gone", "twice", "everywhere")}
    elsewhere = {key: (partition + 1) % 3 for key, partition in home.items()}
    for key in ("same", "changed", "gone"):
        stray.produce(topic_name, b"1", key, partition=elsewhere[key])
    for key in ("twice", "everywhere"):
        stray.produce(topic_name, b"1", key, partition=home[key])
        stray.produce(topic_name, b"2", key, partition=elsewhere[key])
    stray.produce(topic_name, b"3", "everywhere", partition=(home["everywhere"] + 2) % 3)
    assert stray.flush(30) == 0

    frame = text(spark, {"same": "1", "changed": "2", "twice": "1"})
    written = write_table(frame, topic_name, mode="replace")
    assert (written.puts, written.unchanged) == (2, 1)
    # The old row of changed, that of gone, one of twice and the three of everywhere.
    assert written.tombstones == 6
    assert state_of(connection, topic_name) == {b"same": b"1", b"changed": b"2", b"twice": b"1"}
    live = {(r.key, r.partition): r.value for r in records_of(connection, topic_name)}
    assert {place: value for place, value in live.items() if value is not None} == {
        (b"same", elsewhere["same"]): b"1",
        (b"changed", home["changed"]): b"2",
        (b"twice", home["twice"]): b"1",
    }
    again = write_table(frame, topic_name, mode="replace")
    assert (again.puts, again.tombstones, again.unchanged) == (0, 0, 3)


def test_whatever_lives_where_the_differences_make_it_the_frame(spark: SparkSession) -> None:
    dice = random.Random(6)
    keys = [b"%d" % number for number in range(400)]
    live = {(key, partition): dice.choice(VALUES) for key in keys for partition in range(3) if dice.random() < 0.4}
    wanted = {key: dice.choice([*VALUES, None]) for key in keys if dice.random() < 0.7}
    rows = {key: value for key, value in wanted.items() if value is not None}
    after = applied(live, differences_of(spark, live, wanted))
    assert {key: value for (key, _), value in after.items()} == rows
    # One place for each key: only so does every reader agree.
    assert len(after) == len(rows)
    assert differences_of(spark, after, wanted) == []


VALUES = [b"1", b"2", b""]
Places = dict[tuple[bytes, int], bytes]
Change = tuple[bytes, int, bytes | None]


def differences_of(spark: SparkSession, live: Places, wanted: dict[bytes, bytes | None]) -> list[Change]:
    """What is to be written, with the partition that the sink chooses for a put."""
    rows = spark.createDataFrame(list(wanted.items()), "key binary, value binary")
    places = spark.createDataFrame([(k, v, p) for (k, p), v in live.items()], "key binary, value binary, partition int")
    found = differences(rows, places, 3).where("kind != 'unchanged'").collect()
    return [
        (
            bytes(row["key"]),
            partition_of(bytes(row["key"]), 3) if row["partition"] is None else row["partition"],
            None if row["value"] is None else bytes(row["value"]),
        )
        for row in found
    ]


def applied(live: Places, changes: list[Change]) -> Places:
    after = dict(live)
    for key, partition, value in changes:
        if value is None:
            del after[key, partition]
        else:
            after[key, partition] = value
    return after
