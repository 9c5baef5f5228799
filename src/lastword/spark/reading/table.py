"""A topic as a table in Spark: one row for each live key, exactly the state at a position that is captured once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.spark.reading.fold import shown_rows
from lastword.spark.reading.json_columns import as_columns
from lastword.spark.reading.offset_range import At, OffsetRange, captured_range
from lastword.spark.reading.partition_fold import PartitionFold, Room, TooLarge, ids
from lastword.spark.session.client_settings import portable
from lastword.spark.session.failures import one_line_failures
from lastword.spark.session.session import connection_of

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, kw_only=True)
class FoldLimits:
    """How much one reader of a table may take."""

    # Of the rows of one task; beyond it they move to the disk.
    memory_bytes: int = 512 * 1024**2
    # The driver itself reads a log up to these limits: Spark takes seconds to start a worker, and the driver needs as
    # long for a million records.
    driver_offsets: int = 400_000
    driver_bytes: int = 128 * 1024**2


_LIMITS = FoldLimits()


def read_table(
    spark: SparkSession,
    topic: str,
    *,
    at: At = None,
    key: str = "string",
    value: str = "json",
    columns: bool = False,
    schema: StructType | str | None = None,
    fold_memory_bytes: int = _LIMITS.memory_bytes,
    driver_offsets: int = _LIMITS.driver_offsets,
    driver_bytes: int = _LIMITS.driver_bytes,
) -> DataFrame:
    """One row for each live key at `at` (a position, a moment, or latest).

    Its columns are `key`, `value`, `partition`, `offset`, `timestamp`, `headers` (null where there are none) and
    `decode_error`.
    `key` and `value` name the codecs; a JSON value is text, or with `columns` one column for each of its fields, by
    `schema` or, without one, by all values there are, which reads the topic once more. What can't be read is null,
    with the reason in `decode_error`. A past `at` is refused with HorizonPassed when compaction may have erased
    something before it.

    The driver reads a log of at most `driver_offsets` offsets and `driver_bytes` of values; tasks read any
    other, each with at most `fold_memory_bytes` of rows in memory.
    """
    limits = FoldLimits(memory_bytes=fold_memory_bytes, driver_offsets=driver_offsets, driver_bytes=driver_bytes)
    offset_range = captured_range(connection_of(spark), topic, at)
    return table_of(spark, offset_range, key=key, value=value, columns=columns, schema=schema, limits=limits)


def table_of(
    spark: SparkSession,
    offset_range: OffsetRange,
    *,
    key: str = "string",
    value: str = "json",
    columns: bool = False,
    schema: StructType | str | None = None,
    keep: bool = False,
    limits: FoldLimits = _LIMITS,
) -> DataFrame:
    """`read_table` of a captured range; with `keep` the topic is read once, however often the table is used."""
    if schema is not None and not columns:
        raise BadInput("a schema is for columns: give columns=True with it")
    if columns and codec_named(value).name != "json":
        raise BadInput(f"only JSON values have columns, and the value codec is {value}: leave columns out")
    rows, are_shown = _live(spark, offset_range, codec_named(key).name, codec_named(value).name, limits)
    rows = (rows if are_shown else shown_rows(rows, "raw_key")).drop("raw_key")
    if keep:
        rows = rows.persist()
    return as_columns(rows, schema) if columns else rows


def live_rows(spark: SparkSession, offset_range: OffsetRange) -> DataFrame:
    """The live rows of every partition, key and value as bytes: a key that lives in two partitions comes twice."""
    rows, _ = _live(spark, offset_range, "bytes", "bytes", _LIMITS)
    return rows.select("key", "value", "partition")


def _live(
    spark: SparkSession, offset_range: OffsetRange, key_codec: str, value_codec: str, limits: FoldLimits
) -> tuple[DataFrame, bool]:
    """The live rows of every partition, decoded, with the bytes of each key as `raw_key`.

    True beside them: no key comes twice. False: a key may come twice.
    """
    fold = PartitionFold(
        connection=portable(connection_of(spark)),
        offset_range=offset_range,
        key_codec=key_codec,
        value_codec=value_codec,
        memory_bytes=limits.memory_bytes,
    )
    partitions = offset_range.partitions
    if not partitions:
        return spark.createDataFrame([], fold.sql_schema), True
    if offset_range.offsets <= limits.driver_offsets:
        table = _folded_by_driver(partitions, fold, limits.driver_bytes)
        if table is not None:
            keys = table.column("raw_key")
            return spark.createDataFrame(table, fold.sql_schema), len(keys.unique()) == len(keys)

    def folded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for index in ids(batches):
            yield from fold.rows(partitions[index])

    # One task for each partition, with its index.
    tasks = spark.range(0, len(partitions), 1, len(partitions))
    rows = tasks.mapInArrow(folded, fold.sql_schema)
    is_one = len(offset_range.stop) == 1
    if not offset_range.past:
        return rows, is_one
    # Read now and kept: after a compaction the log would no longer have this past.
    with one_line_failures(f"reading {offset_range.topic} at {offset_range.stop}"):
        return rows.localCheckpoint(), is_one


def _folded_by_driver(partitions: tuple[int, ...], fold: PartitionFold, most_bytes: int) -> pyarrow.Table | None:
    """The rows, read by this process; None if they are too large for it."""
    import pyarrow

    batches: list[pyarrow.RecordBatch] = []
    room = Room(most_bytes)
    try:
        for partition in partitions:
            batches += fold.rows(partition, room)
    except TooLarge:
        return None
    return pyarrow.Table.from_batches(batches, schema=fold.arrow_schema)
