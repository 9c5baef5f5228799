"""Frames become rows: by codec, whole or not at all, each key in the partition where every writer puts it."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lastword.api.table import Table
from lastword.core.errors import BadInput, ClusterUnreachable, NotFound
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic
from lastword.spark import Written, read_table, write_table
from lastword.spark.writing.sink import write_records
from support.command_line import CommandLine
from support.programs import run
from support.topic_contents import records_of, state_of

# A session of its own: there is one in a process, and that of the tests has a cluster that answers.
AWAY = """
from lastword.core.errors import ClusterUnreachable
from lastword.spark import Connection, session, stop, write_table
spark = session(Connection(bootstrap_servers="127.0.0.1:1", patience_s=1), master="local[1]")
frame = spark.createDataFrame([("a", "1")], "key string, value string")
for mode in ("append", "replace"):
    try:
        write_table(frame, "users", mode=mode)
    except ClusterUnreachable as refusal:
        print(refusal)
print(tuple(spark.sparkContext.statusTracker().getJobIdsForGroup()))
stop(spark)
"""


@pytest.mark.quick
def test_json_text_is_written_as_it_is_and_only_null_is_a_tombstone(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    users.put("d", 4)
    rows = [("a", '{"n": 1}'), ("b", "null"), ("c", '""'), ("d", None)]
    written = write_table(spark.createDataFrame(rows, "key string, value string"), users.topic)
    assert written == Written(puts=3, tombstones=1)
    assert state_of(connection, users.topic) == {b"a": b'{"n": 1}', b"b": b"null", b"c": b'""'}


def test_several_columns_make_one_object_and_a_null_field_stays_null(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    people = spark.createDataFrame(
        [("u1", "Zoë", 30, True), ("u2", None, None, None)], "id string, name string, age int, admin boolean"
    )
    write_table(people, users.topic, key="id", value=["name", "age"])
    assert state_of(connection, users.topic) == {
        b"u1": '{"name":"Zoë","age":30}'.encode(),
        b"u2": b'{"name":null,"age":null}',
    }
    for name in ("id", "ID"):
        write_table(people, users.topic, key=name, value=None)
        assert users.get("u1") == {"name": "Zoë", "age": 30, "admin": True}


def test_a_null_struct_is_a_tombstone_and_one_of_nulls_is_not(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    rows = spark.createDataFrame([("a", (1,)), ("b", (None,)), ("c", None)], "key string, value struct<n: int>")
    assert write_table(rows, users.topic) == Written(puts=2, tombstones=1)
    assert state_of(connection, users.topic) == {b"a": b'{"n":1}', b"b": b'{"n":null}'}


@pytest.mark.parametrize(
    ("kind", "given_and_written"),
    [
        ("bigint", (2**60, b"1152921504606846976")),
        ("double", (1.5, b"1.5")),
        ("boolean", (False, b"false")),
        ("array<int>", ([1, None], b"[1,null]")),
        ("map<string,double>", ({"x": 0.5}, b'{"x":0.5}')),
        ("timestamp", (datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), b'"2026-01-02T03:04:05.678901Z"')),
    ],
)
def test_any_column_becomes_json(
    spark: SparkSession, connection: Connection, users: Table, kind: str, given_and_written: tuple[Any, bytes]
) -> None:
    given, written = given_and_written
    rows = spark.createDataFrame([("some", given), ("none", None)], f"key string, value {kind}")
    assert write_table(rows, users.topic) == Written(puts=1, tombstones=1)
    assert state_of(connection, users.topic) == {b"some": written}


def test_keys_and_values_by_the_codecs_int_bytes_and_string(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    numbers = spark.createDataFrame([(-1, 7), (2**40, -(2**63))], "key bigint, value bigint")
    write_table(numbers, users.topic, key_codec="int", value_codec="int")
    raw = spark.createDataFrame([(b"\x00\xff", b""), (b"\x01", None)], "key binary, value binary")
    write_table(raw, users.topic, key_codec="bytes", value_codec="bytes")
    write_table(
        spark.createDataFrame([("é", "not json")], "key string, value string"), users.topic, value_codec="string"
    )
    assert state_of(connection, users.topic) == {
        (-1).to_bytes(8, "big", signed=True): (7).to_bytes(8, "big"),
        (2**40).to_bytes(8, "big"): (-(2**63)).to_bytes(8, "big", signed=True),
        b"\x00\xff": b"",
        "é".encode(): b"not json",
    }


def test_columns_may_be_expressions_and_lit_none_deletes(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    ids = spark.range(3)
    key = F.concat(F.lit("user-"), "id")
    write_table(ids, users.topic, key=key, value=F.col("id") * 10)
    assert write_table(ids.where("id < 2"), users.topic, key=key, value=F.lit(None)) == Written(puts=0, tombstones=2)
    assert state_of(connection, users.topic) == {b"user-2": b"20"}


def test_headers_pass_through(spark: SparkSession, connection: Connection, users: Table) -> None:
    rows = spark.createDataFrame(
        [("a", "1", [("source", b"\xff"), ("none", None)]), ("b", "2", None)],
        "key string, value string, headers array<struct<key: string, value: binary>>",
    )
    write_table(rows, users.topic)
    assert {record.key: record.headers for record in records_of(connection, users.topic)} == {
        b"a": (("source", b"\xff"), ("none", None)),
        b"b": (),
    }
    # Read back as a table and written again: the rows are what they were.
    write_table(read_table(spark, users.topic), users.topic)
    again = records_of(connection, users.topic)
    assert len(again) == 4
    assert [(row.key, row.headers) for row in again if row.key == b"a"] == [
        (b"a", (("source", b"\xff"), ("none", None)))
    ] * 2


@pytest.mark.quick
def test_every_key_goes_where_put_puts_it(spark: SparkSession, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=7)
    dice = random.Random(20260101)
    keys = [bytes(dice.randrange(256) for _ in range(length)) for length in range(1, 60)]
    keys += ["ключ".encode(), "é".encode(), "日本語テキスト".encode(), "😀".encode(), b"user-1", b"\x00", b"\xff" * 8]
    with Writer(connection, topic_name) as writer:
        put = {key: writer.write(key, b"1").partition for key in keys}
    rows = spark.createDataFrame([(key, b"2") for key in keys], "key binary, value binary")
    write_table(rows, topic_name, key_codec="bytes", value_codec="bytes")
    written = {record.key: record.partition for record in records_of(connection, topic_name) if record.value == b"2"}
    assert written == put
    assert len(set(put.values())) == 7


def test_the_command_put_agrees_on_the_partition(
    spark: SparkSession, connection: Connection, users: Table, lastword: CommandLine
) -> None:
    keys = ["a", "ключ", "user-10017"]
    write_table(spark.createDataFrame([(key, "1") for key in keys], "key string, value string"), users.topic)
    by_spark = {record.key: record.partition for record in records_of(connection, users.topic)}
    for key in keys:
        assert f"{users.topic}[{by_spark[key.encode()]}]" in lastword("put", users.topic, key, "2")


def test_a_large_value_is_written_and_one_beyond_the_topics_limit_is_one_clear_line(
    spark: SparkSession, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, settings={"max.message.bytes": "2000000"})
    # Hashes, which no compression makes much smaller.
    noise = F.concat_ws("", F.transform(F.sequence(F.lit(1), F.col("id")), lambda n: F.sha2(n.cast("string"), 256)))
    rows = spark.range(25_000, 25_001).select(F.lit("k").alias("key"), noise.alias("value"))
    write_table(rows, topic_name, value_codec="string")
    assert len(state_of(connection, topic_name)[b"k"] or b"") == 1_600_000
    rows = spark.range(90_000, 90_001).select(F.lit("k").alias("key"), noise.alias("value"))
    with pytest.raises(BadInput, match=r"max\.message\.bytes") as refusal:
        write_table(rows, topic_name, value_codec="string")
    assert "\n" not in str(refusal.value)


@pytest.mark.quick
def test_null_keys_are_refused_with_their_number_and_a_sample_and_nothing_is_written(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    rows = [("a", "1"), (None, "22"), (None, None), ("b", "3")]
    with pytest.raises(BadInput, match=r"2 rows with a null key \(value .*'22'.*nothing was written"):
        write_table(spark.createDataFrame(rows, "key string, value string"), users.topic)
    assert records_of(connection, users.topic) == []


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("", "1")], "1 row with an empty key"),
        ([("__lastword_nudge", "1")], "1 row with the key '__lastword_nudge', which is reserved"),
        ([("a", "oops"), ("b", ""), ("c", "1 2")], "3 rows with a value that is not JSON"),
        ([("a", "{'n': 1}")], "1 row with a value that is not JSON"),
        ([("a", "oops"), (None, "1")], "1 row with a null key"),
        ([("\0abcd", "1"), ("\0abc", "1")], "1 row with a key that is read as a schema registry's frame"),
    ],
)
def test_what_no_table_can_have_is_refused(
    spark: SparkSession, connection: Connection, users: Table, rows: list[tuple[str | None, str]], told: str
) -> None:
    with pytest.raises(BadInput, match="nothing was written") as refusal:
        write_table(spark.createDataFrame(rows, "key string, value string"), users.topic)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert records_of(connection, users.topic) == []


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("double", float("nan")),
        ("float", float("-inf")),
        ("array<double>", [1.0, None, float("nan")]),
        ("map<string,array<double>>", {"a": [float("inf")]}),
        ("struct<a: int, b: struct<c: double>>", (1, (float("nan"),))),
    ],
)
def test_numbers_that_json_does_not_have_are_refused_at_any_depth(
    spark: SparkSession, connection: Connection, users: Table, kind: str, given: Any
) -> None:
    with pytest.raises(BadInput, match="1 row with NaN or an infinity in the value"):
        write_table(spark.createDataFrame([("a", given), ("b", None)], f"key string, value {kind}"), users.topic)
    assert records_of(connection, users.topic) == []


def test_text_that_is_not_utf8_is_refused(spark: SparkSession, users: Table) -> None:
    rows = spark.createDataFrame([(b"\xff\xfe",)], "raw binary").select(F.col("raw").cast("string"))
    with pytest.raises(BadInput, match="1 row with a key that is not UTF-8 text"):
        write_table(rows, users.topic, key="raw", value=F.lit(1))


def test_a_key_that_comes_twice_is_refused_unless_the_order_is_known(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    rows = [("a", "1", 10), ("a", "2", 30), ("a", "3", 20), ("b", "4", 5), ("c", "5", 1), ("c", None, 2)]
    frame = spark.createDataFrame(rows, "key string, value string, at int")
    with pytest.raises(BadInput, match=r'2 keys come more than once \("a" 3 times, "c" 2 times\)'):
        write_table(frame, users.topic)
    assert records_of(connection, users.topic) == []
    assert write_table(frame, users.topic, order="at") == Written(puts=2, tombstones=1)
    assert len(records_of(connection, users.topic)) == 3
    assert state_of(connection, users.topic) == {b"a": b"2", b"b": b"4"}


def test_rows_that_are_equally_late_are_refused(spark: SparkSession, connection: Connection, users: Table) -> None:
    rows = spark.createDataFrame([("a", "1", 1), ("a", "2", 1)], "key string, value string, at int")
    with pytest.raises(BadInput, match=r'1 key comes more than once \("a" 2 times\)'):
        write_table(rows, users.topic, order=["at"])
    assert records_of(connection, users.topic) == []


def test_the_source_is_evaluated_once(spark: SparkSession, connection: Connection, users: Table) -> None:
    seen = spark.sparkContext.accumulator(0)

    def counting(number: int) -> str:
        seen.add(1)
        return str(number)

    counted = F.udf(counting, useArrow=False).asNondeterministic()
    write_table(spark.range(10).select(counted("id").alias("key"), F.lit(1).alias("value")), users.topic)
    assert len(state_of(connection, users.topic)) == 10
    assert seen.value == 10


def test_an_empty_frame_writes_nothing(spark: SparkSession, connection: Connection, users: Table) -> None:
    assert write_table(spark.createDataFrame([], "key string, value string"), users.topic) == Written(
        puts=0, tombstones=0
    )
    assert records_of(connection, users.topic) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"key": "kye"}, "no column 'kye': did you mean 'key'?"),
        ({"key": "n"}, "the key is int, and the codec string takes text"),
        ({"key_codec": "int"}, "the key is string, and the codec int takes whole numbers"),
        ({"value_codec": "bytes"}, "the codec bytes takes binary"),
        ({"value_codec": "yaml"}, "no codec 'yaml'"),
        ({"value": ["n"], "value_codec": "string"}, "several columns make a JSON object"),
        ({"value": []}, "no column is left for the value"),
        ({"mode": "overwrite"}, "choose append or replace"),
        ({"at": "0:1"}, "leave it out, or replace"),
        ({"group": "g"}, "are for a stream"),
        ({"checkpoint": "somewhere"}, "are for a stream"),
    ],
)
def test_a_mistake_in_the_call_is_told_at_once(
    spark: SparkSession, users: Table, options: dict[str, Any], told: str
) -> None:
    frame = spark.createDataFrame([("a", "1", 1)], "key string, value string, n int")
    with pytest.raises(BadInput) as refusal:
        write_table(frame, users.topic, **options)
    assert told in str(refusal.value)


def test_all_columns_but_the_key_needs_the_key_s_name(spark: SparkSession, users: Table) -> None:
    with pytest.raises(
        BadInput, match="the key must be the name of a column: add the key as a column and give its name"
    ):
        write_table(spark.range(1), users.topic, key=F.col("id"), value=None)


def test_a_session_with_speculation_is_refused(
    spark: SparkSession, connection: Connection, users: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "_conf", spark.sparkContext.getConf().set("spark.speculation", "true"))
    with pytest.raises(BadInput, match="an old value could be written last: make the session without it"):
        write_table(spark.createDataFrame([("a", "1")], "key string, value string"), users.topic)
    assert records_of(connection, users.topic) == []


def test_a_topic_that_is_not_there_is_not_made(spark: SparkSession, users: Table) -> None:
    frame = spark.createDataFrame([("a", "1")], "key string, value string")
    with pytest.raises(NotFound, match=f"did you mean '{users.topic}'"):
        write_table(frame, users.topic + "x")
    with pytest.raises(NotFound):
        write_table(frame, users.topic + "x", mode="replace")


def test_a_partition_that_is_not_there_fails_in_one_line(
    spark: SparkSession, connection: Connection, users: Table
) -> None:
    same = SameTopic(connection, users.topic, patience_s=30)
    records = spark.createDataFrame([(b"a", b"1", 77)], "key binary, value binary, partition int")
    with pytest.raises(ClusterUnreachable, match=f"writing to {users.topic}: .*77.*write all rows again") as failure:
        write_records(records, users.topic, connection, same, max_block_ms=2000)
    assert "\n" not in str(failure.value)


def test_a_cluster_that_is_away_is_told_before_spark_starts_a_job() -> None:
    append, replace, jobs = run(AWAY, {}).splitlines()
    assert append.startswith("no Kafka answers at 127.0.0.1:1")
    assert replace.startswith("no Kafka answers at 127.0.0.1:1")
    assert jobs == "()"
