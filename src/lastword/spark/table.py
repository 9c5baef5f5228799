"""A topic as a table in Spark: one row for each live key, exactly the state at a position that is captured once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput, HorizonPassed
from lastword.spark.fold import shown_rows
from lastword.spark.json_columns import as_columns
from lastword.spark.partition_fold import PartitionFold, first_gap, ids
from lastword.spark.session import connection_of
from lastword.spark.span import At, Span, captured_span

if TYPE_CHECKING:
    import pyarrow

# Of the rows that one task holds; beyond it they move to the disk.
FOLD_MEMORY_BYTES = 512 * 1024**2
# A log of no more offsets, folding to no more bytes, is read by the driver: Spark takes seconds to start a worker.
HERE_OFFSETS = 50_000
HERE_BYTES = 64 * 1024**2


def read_table(
    spark: SparkSession,
    topic: str,
    *,
    at: At = None,
    key: str = "string",
    value: str = "json",
    columns: bool = False,
    schema: StructType | str | None = None,
    fold_memory_bytes: int = FOLD_MEMORY_BYTES,
) -> DataFrame:
    """One row for each live key at `at` (a position, a moment, or latest): key, value, partition, offset, timestamp.

    `key` and `value` name the codecs; a JSON value is text, or with `columns` one column for each of its fields, by
    `schema` or, without one, by all values there are, which reads the topic once more. What can't be read is null,
    with the reason in `decode_error`. A past `at` is refused with HorizonPassed when compaction may have erased
    something before it.
    """
    span = captured_span(connection_of(spark), topic, at)
    return table_of(
        spark, span, key=key, value=value, columns=columns, schema=schema, fold_memory_bytes=fold_memory_bytes
    )


def table_of(
    spark: SparkSession,
    span: Span,
    *,
    key: str = "string",
    value: str = "json",
    columns: bool = False,
    schema: StructType | str | None = None,
    keep: bool = False,
    fold_memory_bytes: int = FOLD_MEMORY_BYTES,
) -> DataFrame:
    """The same, of a span that is captured already; with `keep` the topic is read once, however often the table is."""
    if schema is not None and not columns:
        raise BadInput("a schema is for columns: give columns=True with it")
    if columns and codec_named(value).name != "json":
        raise BadInput(f"only JSON values have columns, and the value codec is {value}: leave columns out")
    fold = PartitionFold(
        connection=connection_of(spark),
        topic=span.topic,
        start=span.start,
        stop=span.stop,
        key_codec=codec_named(key).name,
        value_codec=codec_named(value).name,
        memory_bytes=fold_memory_bytes,
    )
    _refuse_erased_past(spark, span, fold)
    rows = _folded(spark, span, fold)
    if keep:
        rows = rows.persist()
    return as_columns(rows, schema) if columns else rows


def live_rows(spark: SparkSession, span: Span) -> DataFrame:
    """The live rows of every partition, key and value as bytes: a key that lives in two partitions comes twice."""
    fold = PartitionFold(
        connection=connection_of(spark),
        topic=span.topic,
        start=span.start,
        stop=span.stop,
        key_codec="bytes",
        value_codec="bytes",
        memory_bytes=FOLD_MEMORY_BYTES,
    )
    _refuse_erased_past(spark, span, fold)
    return _live(spark, span, fold).select("key", "value", "partition")


def _folded(spark: SparkSession, span: Span, fold: PartitionFold) -> DataFrame:
    rows = _live(spark, span, fold)
    if len(span.stop) > 1:
        rows = shown_rows(rows, "raw_key")
    return rows.drop("raw_key")


def _live(spark: SparkSession, span: Span, fold: PartitionFold) -> DataFrame:
    partitions = span.partitions
    if not partitions:
        return spark.createDataFrame([], fold.sql_schema)
    if span.offsets <= HERE_OFFSETS and (few := _folded_here(partitions, fold)) is not None:
        return spark.createDataFrame(few, fold.sql_schema)

    def folded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for index in ids(batches):
            yield from fold.rows(partitions[index])

    return _tasks(spark, partitions).mapInArrow(folded, fold.sql_schema)


def _refuse_erased_past(spark: SparkSession, span: Span, fold: PartitionFold) -> None:
    """Compaction leaves the log's start where it is, so only a log without gaps shows all that was there."""
    partitions = tuple(sorted(span.past))
    if not partitions:
        return

    def gaps(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for index in ids(batches):
            gap = first_gap(fold, partitions[index])
            yield pyarrow.RecordBatch.from_pydict(
                {
                    "partition": pyarrow.array([partitions[index]], pyarrow.int32()),
                    "gap": pyarrow.array([gap], pyarrow.int64()),
                }
            )

    if span.offsets <= HERE_OFFSETS:
        found = [(partition, first_gap(fold, partition)) for partition in partitions]
    else:
        rows = _tasks(spark, partitions).mapInArrow(gaps, "partition int, gap bigint").collect()
        found = [(row["partition"], row["gap"]) for row in rows]
    missing = [(partition, gap) for partition, gap in found if gap is not None]
    if missing:
        partition, gap = min(missing)
        raise HorizonPassed(
            f"{span.topic} at {span.stop}: {span.topic}[{partition}] has no record at offset {gap}: compaction (or the "
            "end of a transaction) left a gap before that position, so its state is not certain: ask for latest"
        )


def _folded_here(partitions: tuple[int, ...], fold: PartitionFold) -> pyarrow.Table | None:
    """The rows, read by this process; None if they are few and yet too large."""
    import pyarrow

    batches: list[pyarrow.RecordBatch] = []
    size = 0
    for partition in partitions:
        for batch in fold.rows(partition):
            batches.append(batch)
            size += batch.nbytes
            if size > HERE_BYTES:
                return None
    return pyarrow.Table.from_batches(batches, schema=fold.arrow_schema)


def _tasks(spark: SparkSession, partitions: tuple[int, ...]) -> DataFrame:
    """One task for each partition, with its index."""
    return spark.range(0, len(partitions), 1, len(partitions))
