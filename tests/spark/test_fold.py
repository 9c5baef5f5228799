"""The fold as transformations of any frame of records: the law, and a plan that carries no overwritten value."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from lastword.core.fold import fold
from lastword.core.record import Record
from lastword.spark import merge, newest_per_key

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Any key in any partition and clocks that lie, so that keys are split and timestamps mislead.
put = st.tuples(
    st.none() | st.sampled_from([b"", b"a", b"b", b"\x00\xff", "ключ".encode()]),
    st.none() | st.sampled_from([b"", b"null", b"1", b"\xff"]),
    st.integers(0, 2),
    st.integers(0, 5),
    st.integers(1, 200),
)
log = st.lists(put, max_size=12)
# Spark takes half a second for a frame of any size, so one example is many logs, each with keys of its own.
many_logs = st.lists(log, min_size=20, max_size=40)


def records_of(puts: Iterable[tuple[bytes | None, bytes | None, int, int, int]]) -> list[Record]:
    """A log with gaps between its offsets."""
    ends: dict[int, int] = {}
    records = []
    for key, value, partition, timestamp, step in puts:
        ends[partition] = ends.get(partition, 0) + step
        records.append(Record(key, value, partition, ends[partition], timestamp))
    return records


def joined(logs: Iterable[Iterable[Any]]) -> list[Record]:
    puts: list[Any] = []
    for number, each in enumerate(logs):
        # Between the logs nothing is shared but the partitions.
        puts += [(None if key is None else b"%d/" % number + key, *rest) for key, *rest in each]
    return records_of(puts)


def frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    rows = [(r.key, r.value, r.partition, r.offset, EPOCH + timedelta(milliseconds=r.timestamp)) for r in records]
    return spark.createDataFrame(rows, SCHEMA)


def disagreements(table: DataFrame, records: Iterable[Record]) -> list[str]:
    """Where a folded frame is not the fold of the records: the oracle of this file."""
    found = [
        Record(
            bytes(row.key),
            bytes(row.value),
            row.partition,
            row.offset,
            round(row.timestamp.replace(tzinfo=UTC).timestamp() * 1000),
        )
        for row in table.collect()
    ]
    if len(found) != len({row.key for row in found}):
        return ["a key twice"]
    return [] if {row.key: row for row in found} == fold(records) else ["rows"]


@pytest.mark.quick
@given(logs=many_logs)
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_newest_record_of_each_key_is_the_fold_whatever_shares_a_bit_of_the_map(
    spark: SparkSession, logs: list[list[Any]]
) -> None:
    records = joined(logs)
    # One word of bits for everything: almost every record shares one with a newest record.
    for words in (1, 1 << 20):
        assert disagreements(newest_per_key(frame(spark, records), map_words=words), records) == []


@pytest.mark.quick
@given(before=many_logs, after=many_logs, overlap=st.integers(0, 5))
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changes_merged_into_a_state_give_the_fold_of_both_even_when_they_overlap(
    spark: SparkSession,
    before: list[list[Any]],
    after: list[list[Any]],
    overlap: int,
) -> None:
    # The same keys before and after, each in one partition.
    both = [first + second for first, second in zip(before, after, strict=False)]
    records = joined([[(key, value, len(key or b"") % 3, *rest) for key, value, _, *rest in log] for log in both])
    ends = {p: max((r.offset for r in records if r.partition == p), default=0) // 2 for p in (0, 1, 2)}
    state = fold(r for r in records if r.offset <= ends[r.partition])
    changes = [r for r in records if r.offset > ends[r.partition] - overlap]
    merged = merge(frame(spark, state.values()), frame(spark, changes))
    assert disagreements(merged, records) == []


@pytest.mark.quick
def test_the_oracle_objects_to_a_fold_by_timestamp_and_to_one_that_drops_tombstones_first(spark: SparkSession) -> None:
    records = records_of(
        [(b"a", b"old", 0, 9, 1), (b"a", b"new", 0, 1, 1), (b"b", b"1", 0, 2, 1), (b"b", None, 0, 3, 1)]
    )
    right = frame(spark, records)
    assert disagreements(newest_per_key(right), records) == []
    by_time = right.selectExpr("key", "value", "partition", "unix_millis(timestamp) as offset", "timestamp")
    assert disagreements(newest_per_key(by_time), records) == ["rows"]
    assert disagreements(newest_per_key(right.where("value is not null")), records) == ["rows"]
    assert disagreements(right.where("value is not null"), records) == ["a key twice"]


@pytest.mark.quick
def test_a_record_that_comes_twice_counts_once(spark: SparkSession) -> None:
    records = records_of([(b"a", b"1", 0, 1, 1), (b"b", b"2", 1, 1, 1)])
    assert disagreements(newest_per_key(frame(spark, records * 2)), records) == []


@pytest.mark.quick
def test_values_go_through_no_aggregate(spark: SparkSession) -> None:
    one = frame(spark, records_of([(b"a", b"1", 0, 1, 1)]))
    plan = newest_per_key(one)._jdf.queryExecution().toString()
    assert "SortAggregate" not in plan
    assert "ObjectHashAggregate" not in plan
    assert "HashAggregate" in plan


def test_headers_come_with_the_rows_where_the_records_have_them(spark: SparkSession) -> None:
    rows = [(b"a", b"1", 0, 0, EPOCH, [("by", b"x")]), (b"a", b"2", 0, 1, EPOCH, [("by", None)])]
    headed = spark.createDataFrame(rows, f"{SCHEMA}, headers array<struct<key: string, value: binary>>")
    (row,) = newest_per_key(headed).collect()
    assert (bytes(row.value), [tuple(header) for header in row.headers]) == (b"2", [("by", None)])
    plain = frame(spark, [Record(b"b", b"3", 0, 2, 0)])
    merged = {bytes(row.key): row.headers for row in merge(headed, plain).collect()}
    assert (len(merged[b"a"]), merged[b"b"]) == (1, None)
    assert newest_per_key(plain).columns == ["key", "value", "partition", "offset", "timestamp"]
