"""Writing a frame to a compacted topic: added to the table, or in place of it; once, or batch by batch as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lastword.core.errors import BadInput
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.same_topic import SameTopic
from lastword.spark.reading.offset_range import At, captured_range
from lastword.spark.reading.records import HEADERS
from lastword.spark.reading.table import live_rows
from lastword.spark.session.session import connection_of
from lastword.spark.writing.checking import Counts, counted
from lastword.spark.writing.encoding import Encoding
from lastword.spark.writing.group_progress import GroupProgress
from lastword.spark.writing.replacing import PUT, TOMBSTONE, UNCHANGED, differences
from lastword.spark.writing.sink import write_records

Mode = Literal["append", "replace"]


@dataclass(frozen=True, kw_only=True)
class Written:
    """How many records were written; for a replaced table also the rows that were the same at `against`."""

    puts: int
    tombstones: int
    unchanged: int = 0
    against: Position | None = None


@overload
def write_table(
    df: DataFrame,
    topic: str,
    *,
    key: Column | str = "key",
    value: Column | str | Sequence[str] | None = "value",
    mode: Mode = "append",
    at: At = None,
    key_codec: str = "string",
    value_codec: str = "json",
    order: Column | str | Sequence[Column | str] | None = None,
) -> Written: ...


@overload
def write_table(
    df: DataFrame,
    topic: str,
    *,
    key: Column | str = "key",
    value: Column | str | Sequence[str] | None = "value",
    key_codec: str = "string",
    value_codec: str = "json",
    order: Column | str | Sequence[Column | str] | None = None,
    checkpoint: str | Path,
    group: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    output_mode: str = "update",
) -> StreamingQuery: ...


def write_table(
    df: DataFrame,
    topic: str,
    *,
    key: Column | str = "key",
    value: Column | str | Sequence[str] | None = "value",
    mode: Mode = "append",
    at: At = None,
    key_codec: str = "string",
    value_codec: str = "json",
    order: Column | str | Sequence[Column | str] | None = None,
    checkpoint: str | Path | None = None,
    group: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    output_mode: str = "update",
) -> Written | StreamingQuery:
    """Writes each row of `df` as the newest record of its key; a null value is a tombstone, JSON null is a value.

    `key` and `value` are columns; several names, or None for all columns but the key, make one JSON object. A column
    `headers` of the connector's type becomes headers. A row that a table can't take (a null, empty or reserved key,
    text that is not JSON) is refused with BadInput before anything is written, and so is a key that comes twice:
    Spark's tasks write in no order. With `order`, the column or columns that say which row is later, only the last
    row of each key is written.

    With `mode="replace"` the table becomes exactly `df`, compared with the table at `at` (a position, a moment, or
    latest): rows that are new or differ are written, keys that are no longer there get tombstones, and nothing else
    is written. Records that others write after that position are not considered: they stay or are overwritten.

    A streaming `df` gives the running query. It needs a `checkpoint` (a folder of Spark's), and writes at least once:
    a batch that fails half-way is written again. With `group` the progress of its Kafka sources is committed to that
    consumer group after each batch. `trigger` is what Spark's `trigger` takes, such as {"availableNow": True}.
    """
    connection = connection_of(df.sparkSession)
    refuse_speculation(df.sparkSession)
    encoding = Encoding(key=key, value=value, key_codec=key_codec, value_codec=value_codec, order=order)
    if mode not in ("append", "replace"):
        raise BadInput(f"mode={mode!r}: choose append or replace")
    if at is not None and mode != "replace":
        raise BadInput("at is the position that mode='replace' compares with: leave it out, or replace")
    if not df.isStreaming:
        if checkpoint is not None or group is not None or trigger is not None:
            raise BadInput("checkpoint, group and trigger are for a stream, and this frame is none: leave them out")
        if mode == "replace":
            return _replace(df, topic, connection, encoding, at)
        counts = _append(df, topic, connection, encoding, _same(connection, topic))
        return Written(puts=counts.puts, tombstones=counts.tombstones)
    if mode == "replace":
        raise BadInput("a stream has no end that a table could be replaced by: use mode='append'")
    if checkpoint is None:
        raise BadInput("a stream needs a folder for its progress: give it as checkpoint")
    connection.topic(topic)
    # Mistakes in the columns and codecs show here, and not in the first batch.
    encoding.encoded(df)
    progress = GroupProgress(df.sparkSession, GroupPosition(connection, group)) if group is not None else None
    writer = _batchwise(df, topic, connection, encoding, progress).outputMode(output_mode)
    writer = writer.option("checkpointLocation", str(checkpoint))
    return _started(writer.trigger(**trigger) if trigger else writer, progress)


def refuse_speculation(spark: SparkSession) -> None:
    """BadInput for a session that runs a slow task twice at once: the attempt that lost may write after the other."""
    if spark.sparkContext.getConf().get("spark.speculation", "false").strip().lower() == "true":
        raise BadInput(
            "the session has spark.speculation=true: two attempts of a task would write at once, and an old value "
            "could be written last: make the session without it"
        )


def _batchwise(
    frame: DataFrame, topic: str, connection: Connection, encoding: Encoding, progress: GroupProgress | None
) -> DataStreamWriter:
    same = _same(connection, topic)

    def write_batch(batch: DataFrame, _: int) -> None:
        if progress is not None:
            progress.raise_refusal()
        _append(batch, topic, connection, encoding, same)

    return frame.writeStream.foreachBatch(write_batch)


def _same(connection: Connection, topic: str) -> SameTopic:
    return SameTopic(connection, topic, patience_s=connection.patience_s)


def _append(frame: DataFrame, topic: str, connection: Connection, encoding: Encoding, same: SameTopic) -> Counts:
    with _persisted(encoding.encoded(frame)) as rows:
        counts = counted(rows, topic, encoding.key_codec)
        if counts.puts or counts.tombstones:
            headers = [HEADERS] if HEADERS in rows.columns else []
            write_records(rows.where("newest").select("key", "value", *headers), topic, connection, same)
        return counts


def _replace(frame: DataFrame, topic: str, connection: Connection, encoding: Encoding, at: At) -> Written:
    same = _same(connection, topic)
    offset_range = captured_range(connection, topic, at)
    with _persisted(encoding.encoded(frame)) as rows:
        counted(rows, topic, encoding.key_codec)
        live = live_rows(frame.sparkSession, offset_range)
        with _persisted(
            differences(rows.where("newest").drop("problem", "newest"), live, len(offset_range.stop))
        ) as records:
            counts = {row["kind"]: row["count"] for row in records.groupBy("kind").count().collect()}
            if counts.keys() & {PUT, TOMBSTONE}:
                write_records(records.where(F.col("kind") != UNCHANGED).drop("kind"), topic, connection, same)
    return Written(
        puts=counts.get(PUT, 0),
        tombstones=counts.get(TOMBSTONE, 0),
        unchanged=counts.get(UNCHANGED, 0),
        against=offset_range.stop,
    )


def _started(writer: DataStreamWriter, progress: GroupProgress | None) -> StreamingQuery:
    if progress is None:
        return writer.start()
    # Before the start, or the first batch could be over before anybody listens.
    progress.listen()
    try:
        query = writer.start()
    except BaseException:
        progress.leave()
        raise
    progress.follow(str(query.runId))
    return query


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, evaluated once: the rows that were checked are the rows that are written.

    Spark computes again what a lost executor held.
    """
    persisted = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield persisted
    finally:
        persisted.unpersist()
