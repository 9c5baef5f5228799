"""A topic as a table in Spark, on real logs: what the law makes of them at a position, and errors that say so."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from hypothesis import HealthCheck, given, settings
from pyspark.sql import DataFrame, SparkSession

from lastword.api.table import Table
from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput, HorizonPassed, NotFound
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.core.row import row_of
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.topics.topic_changes import create_topic
from lastword.spark import newest_per_key, read_records, read_table
from support.generated_logs import PARTITIONS, Act, Put, fresh_topic, leave_open, logs, write_log
from support.replicas import log_now, replica_of, wait_until_caught_up

EXAMPLES = 2 * int(os.environ.get("LASTWORD_SOAK", "1"))
# `read_table` with limits of its own.
Reader = Callable[..., DataFrame]
FIELDS = ("key", "value", "partition", "offset", "timestamp", "headers", "decode_error")


@pytest.fixture(params=["driver", "tasks"])
def reader(request: pytest.FixtureRequest) -> Reader:
    """Reads a table by the driver, as a small log is read, or by one task for each partition."""
    return read_table if request.param == "driver" else partial(read_table, driver_offsets=0)


def rows_of(table: DataFrame) -> list[tuple[Any, ...]]:
    rows = [tuple(row[name] for name in FIELDS) for row in table.collect()]
    return sorted(
        (bytes(key), value, partition, offset, _ms(moment), headers_in(headers), error)
        for key, value, partition, offset, moment, headers, error in rows
    )


def law(records: list[Record]) -> list[tuple[Any, ...]]:
    """The fold as rows of a table with bytes as keys and JSON as values."""
    expected = []
    for key, record in sorted(fold(records).items()):
        row = row_of(record, codec_named("bytes"), codec_named("json"))
        assert record.value is not None
        text = None if row.decode_error else codec_named("json").to_json(record.value).decode()
        expected.append((key, text, row.partition, row.offset, row.timestamp, row.headers, row.decode_error))
    return expected


def headers_in(cell: Any) -> Headers:
    """The headers of a row, which are null where there are none."""
    assert cell is None or len(cell) > 0
    return tuple((each.key, None if each.value is None else bytes(each.value)) for each in cell or ())


def _ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def puts(*rows: tuple[bytes | None, bytes | None, int]) -> list[Act]:
    return [Act(puts=(Put(key=key, value=value, partition=p),), ending="plain") for key, value, p in rows]


@pytest.mark.soak
@given(log=logs)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_table_is_the_fold_of_what_was_committed_and_the_replica_before_and_after_compaction(
    spark: SparkSession,
    connection: Connection,
    tmp_path_factory: pytest.TempPathFactory,
    reader: Reader,
    log: list[Act],
) -> None:
    with fresh_topic(connection) as topic:
        committed = write_log(connection, topic, log)
        home = tmp_path_factory.mktemp("home")
        expected = law(committed)
        assert rows_of(reader(spark, topic, key="bytes")) == expected
        # A bound of nothing: every row goes over the disk.
        assert rows_of(reader(spark, topic, key="bytes", fold_memory_bytes=0)) == expected
        compact_topic(connection, topic, home=home)
        # A key may live in two partitions, and cleaning one of them may take the tombstone that hid nothing else.
        assert rows_of(reader(spark, topic, key="bytes")) == law(log_now(connection, topic))
        with replica_of(connection, topic, home / "replica") as replica:
            wait_until_caught_up(connection, replica)
            assert [(row.key, row.offset, row.headers) for row in replica.scan()] == [
                (row[0], row[3], row[5]) for row in law(committed)
            ]
        folded = newest_per_key(read_records(spark, topic))
        assert sorted((bytes(row.key), row.offset, headers_in(row.headers)) for row in folded.collect()) == [
            (row[0], row[3], row[5]) for row in expected
        ]


@pytest.mark.quick
def test_the_oracle_objects_to_a_table_without_its_tombstones(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    committed = write_log(connection, topic_name, puts((b"a", b"1", 0), (b"b", b"2", 1), (b"b", None, 1)))
    assert rows_of(read_table(spark, topic_name, key="bytes")) == law(committed)
    assert rows_of(read_table(spark, topic_name, key="bytes")) != law([r for r in committed if r.value is not None])
    assert rows_of(read_table(spark, topic_name, key="bytes", at="0:1")) != law(committed[1:])
    other = Record(b"a", b"1", 0, 0, committed[0].timestamp, (("trace", None),))
    assert rows_of(read_table(spark, topic_name, key="bytes")) != law([other])


@pytest.mark.quick
def test_records_are_the_raw_log_with_tombstones_and_headers(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=2)
    with Table(connection, topic_name) as users:
        users.put("a", {"x": 1}, headers={"by": b"me"})
        users.delete("a")
    first, second = read_records(spark, topic_name).orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value)) == (b"a", b'{"x":1}')
    assert [(header.key, bytes(header.value)) for header in first.headers] == [("by", b"me")]
    assert (bytes(second.key), second.value, second.headers) == (b"a", None, None)
    assert (first.partition, first.offset, second.offset) == (second.partition, 0, 1)


def test_a_read_ends_before_an_open_transaction(spark: SparkSession, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, puts((b"a", b"1", 0)))
    open_one = leave_open(connection, topic_name, [Put(key=b"a", value=b"2", partition=0)])
    assert [row.value for row in read_table(spark, topic_name).collect()] == ["1"]
    assert read_records(spark, topic_name).count() == 1
    open_one.abort_transaction(30)


def test_an_empty_topic_is_an_empty_table(spark: SparkSession, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=2)
    assert read_table(spark, topic_name).collect() == []
    assert read_records(spark, topic_name).collect() == []
    assert read_table(spark, topic_name, columns=True).collect() == []


@pytest.mark.quick
def test_a_past_position_is_answered_while_the_log_has_no_gap_and_refused_after_compaction(
    spark: SparkSession, connection: Connection, topic_name: str, tmp_path: Path, reader: Reader
) -> None:
    create_topic(connection, topic_name, partitions=1)
    written = write_log(
        connection, topic_name, puts((b"a", b"1", 0), (b"a", b"2", 0), (b"b", b"3", 0), (b"a", None, 0))
    )
    for at, expected in (("0:1", {"a": "1"}), ("0:2", {"a": "2"}), ("0:3", {"a": "2", "b": "3"}), ("0:4", {"b": "3"})):
        assert {row.key: row.value for row in reader(spark, topic_name, at=at).collect()} == expected
    moment = datetime.fromtimestamp(written[2].timestamp / 1000, tz=UTC)
    before = [record for record in written if record.timestamp < written[2].timestamp]
    rows = reader(spark, topic_name, at=moment, key="bytes").collect()
    assert {bytes(row.key): row.value.encode() for row in rows} == {key: r.value for key, r in fold(before).items()}
    early = reader(spark, topic_name, at="0:2")
    compact_topic(connection, topic_name, home=tmp_path)
    # What was asked for while the log could still tell it stays told.
    assert [(row.key, row.value) for row in early.collect()] == [("a", "2")]
    with pytest.raises(HorizonPassed, match=r"\[0\] has no record at offset 0.*ask for latest"):
        reader(spark, topic_name, at="0:2")
    assert [row.key for row in reader(spark, topic_name).collect()] == ["b"]


def test_a_position_before_the_log_s_start_is_refused(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "compact,delete"})
    write_log(connection, topic_name, puts((b"a", b"1", 0), (b"b", b"2", 0), (b"c", b"3", 0)))
    admin = connection.admin()
    (deleted,) = admin.delete_records([TopicPartition(topic_name, 0, 2)]).values()
    deleted.result()
    with pytest.raises(HorizonPassed, match=r"starts at 2, so what was before 0:1 is gone: ask for 0:2 or later"):
        read_table(spark, topic_name, at="0:1")
    assert [row.key for row in read_table(spark, topic_name).collect()] == ["c"]


def test_a_position_that_is_not_there_or_names_no_partition_of_the_topic_is_refused(
    spark: SparkSession, users: Table
) -> None:
    with pytest.raises(BadInput, match=r"ends at 0, so the position 1:5 is not there yet"):
        read_table(spark, users.topic, at=Position({1: 5}))
    with pytest.raises(BadInput, match="no partition 7"):
        read_records(spark, users.topic, at="7:0")
    with pytest.raises(BadInput, match="has no time zone"):
        read_table(spark, users.topic, at=datetime(2026, 1, 1))
    with pytest.raises(NotFound, match="no topic"):
        read_table(spark, "no-such-topic")


@pytest.mark.quick
def test_what_a_codec_can_t_read_is_null_with_the_reason_beside_it(
    spark: SparkSession, connection: Connection, topic_name: str, reader: Reader
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, puts((b"ok", b"null", 0), (b"bad", b"{", 0), (b"\xff", b"1", 0), (b"", b'""', 0)))
    rows = {row.offset: row for row in reader(spark, topic_name).collect()}
    assert (rows[0].key, rows[0].value, rows[0].decode_error) == ("ok", "null", None)
    assert (rows[1].key, rows[1].value) == ("bad", None)
    assert rows[1].decode_error.startswith("not JSON")
    assert (rows[2].key, rows[2].value) == (None, "1")
    assert rows[2].decode_error.startswith("not UTF-8 text")
    assert (rows[3].key, rows[3].value, rows[3].decode_error) == ("", '""', None)


def test_each_codec_gives_its_own_type(spark: SparkSession, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, puts(((5).to_bytes(8, "big"), (-7).to_bytes(8, "big", signed=True), 0)))
    assert [(row.key, row.value) for row in read_table(spark, topic_name, key="int", value="int").collect()] == [
        (5, -7)
    ]
    (row,) = read_table(spark, topic_name, key="bytes", value="bytes").collect()
    assert base64.b64encode(bytes(row.key)) == b"AAAAAAAAAAU="
    with pytest.raises(BadInput, match="no codec 'avro'"):
        read_table(spark, topic_name, value="avro")


@pytest.mark.quick
def test_fields_become_columns_by_inference_over_every_value(spark: SparkSession, users: Table) -> None:
    users.put("a", {"name": "Alice", "age": 25, "offset": "mine"}, headers={"by": "me", "raw": b"\xff"})
    users.put("b", {"name": "Bob", "tags": ["x"]})
    users.put("c", 7)
    table = read_table(spark, users.topic, columns=True)
    assert table.columns == [
        "key",
        "age",
        "name",
        "value_offset",
        "tags",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "decode_error",
    ]
    rows = {row.key: row for row in table.collect()}
    assert (rows["a"]["age"], rows["a"]["name"], rows["a"]["value_offset"]) == (25, "Alice", "mine")
    assert (headers_in(rows["a"]["headers"]), rows["b"]["headers"]) == ((("by", b"me"), ("raw", b"\xff")), None)
    assert (rows["b"]["age"], rows["b"]["tags"]) == (None, ["x"])
    assert rows["a"].decode_error is None
    assert rows["c"].decode_error == "value: does not fit the columns' types"


@pytest.mark.parametrize(
    ("values", "schema", "told"),
    [
        ([b'{"Name": 1}', b'{"name": 2}'], None, "the values have the fields Name and name, which"),
        ([b'{"Name": 1, "name": 2}'], None, "the values have the fields Name and name, which"),
        ([b'{"key": 1, "value_key": 2}'], None, "the values have the fields key and value_key, which"),
        ([b'{"key": 1, "KEY": 2}'], None, "the values have the fields KEY and key, which"),
        ([b'{"a": 1, "a": 2}'], None, "the values have the field a twice, which"),
        ([b'{"Name": 1}'], "Name INT, name INT", "the schema has the fields Name and name, which"),
        ([b'{"key": 1}'], "key INT, Value_Key INT", "the schema has the fields key and Value_Key, which"),
    ],
)
def test_two_fields_that_would_be_one_column_are_refused(
    spark: SparkSession, connection: Connection, users: Table, *, values: list[bytes], schema: str | None, told: str
) -> None:
    write_log(connection, users.topic, puts(*[(str(n).encode(), value, 0) for n, value in enumerate(values)]))
    with pytest.raises(BadInput) as refusal:
        read_table(spark, users.topic, columns=True, schema=schema)
    advice = "Spark's columns can't tell apart: give a schema with one of them, or read without columns"
    assert str(refusal.value) == f"{told} {advice}"
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_fields_that_differ_in_case_inside_an_object_are_all_there(spark: SparkSession, users: Table) -> None:
    users.put("a", {"seen": {"X": 1}})
    users.put("b", {"seen": {"x": 2}})
    # Another session of the program was used last.
    spark.newSession().createDataFrame([(1,)], "n int")
    rows = {row.key: row.seen.asDict() for row in read_table(spark, users.topic, columns=True).collect()}
    assert rows == {"a": {"X": 1, "x": None}, "b": {"X": None, "x": 2}}


def test_a_declared_schema_reads_what_fits_and_says_what_does_not(spark: SparkSession, users: Table) -> None:
    users.put("a", {"name": "Alice", "age": 25})
    users.put("b", {"name": "Bob", "age": "old"})
    rows = {
        row.key: row for row in read_table(spark, users.topic, columns=True, schema="age INT, name STRING").collect()
    }
    assert (rows["a"].age, rows["a"].name, rows["a"].decode_error) == (25, "Alice", None)
    assert (rows["b"].age, rows["b"].decode_error) == (None, "value: does not fit the columns' types")
    with pytest.raises(BadInput, match="write it like  name STRING, age INT"):
        read_table(spark, users.topic, columns=True, schema="age INTT")
    with pytest.raises(BadInput, match="give columns=True with it"):
        read_table(spark, users.topic, schema="age INT")


def test_no_value_of_a_table_goes_through_an_aggregate_and_one_partition_needs_no_shuffle(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, puts((b"a", b"1", 0)))

    def plan(table: DataFrame) -> str:
        return str(table._jdf.queryExecution().toString())

    # A small log is read by the driver, unless its rows are large.
    assert "MapInArrow" not in plan(read_table(spark, topic_name))
    of_large_rows = plan(read_table(spark, topic_name, driver_bytes=0))
    assert "MapInArrow" in of_large_rows
    assert "Exchange" not in of_large_rows
    assert "Aggregate" not in of_large_rows


def test_the_log_s_bounds_are_taken_once_so_a_later_write_is_not_in_the_table(
    spark: SparkSession, users: Table
) -> None:
    users.put("a", 1)
    table = read_table(spark, users.topic)
    users.put("a", 2)
    users.put("b", 3)
    assert [(row.key, row.value) for row in table.collect()] == [("a", "1")]


@pytest.mark.quick
def test_changes_are_streamed_from_a_position_on(
    spark: SparkSession, connection: Connection, users: Table, tmp_path: Path
) -> None:
    from lastword.spark import read_changes

    users.put("a", 1)
    after = log_bounds(connection, users.topic)[1]
    users.put("b", 2)
    users.delete("a")
    stream = read_changes(spark, users.topic, after=str(after))
    query = (
        stream.writeStream.format("memory")
        .queryName("changes")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    assert query.awaitTermination(60)
    found = {(bytes(row.key), row.value and bytes(row.value)) for row in spark.table("changes").collect()}
    assert found == {(b"b", b"2"), (b"a", None)}
