"""The usual recipes to fold records in Spark, all over the same frame of records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.fold.names import MAX_BY, MAX_STRUCT, ROW_NUMBER

_COLUMNS = ("key", "value", "partition", "offset", "timestamp")


def max_by(records: DataFrame) -> DataFrame:
    newest = records.groupBy("key").agg(F.max_by(F.struct(*_COLUMNS[1:]), "offset").alias("newest"))
    return _live(newest.select("key", "newest.*"))


def row_number(records: DataFrame) -> DataFrame:
    newest_first = Window.partitionBy("key").orderBy(F.desc("offset"))
    ranked = records.select(*_COLUMNS).withColumn("rank", F.row_number().over(newest_first))
    return _live(ranked.where("rank = 1").drop("rank"))


def max_struct(records: DataFrame) -> DataFrame:
    newest = F.max(F.struct("offset", "value", "partition", "timestamp"))
    return _live(records.groupBy("key").agg(newest.alias("newest")).select("key", "newest.*").select(*_COLUMNS))


RECIPES: dict[str, Callable[[DataFrame], DataFrame]] = {
    MAX_BY: max_by,
    ROW_NUMBER: row_number,
    MAX_STRUCT: max_struct,
}


def delta_merge(records: DataFrame, target: Path) -> DataFrame:
    """The newest record of each key, merged into an empty Delta table, as a micro-batch would do."""
    spark = records.sparkSession
    spark.createDataFrame([], records.select(*_COLUMNS).schema).write.format("delta").save(str(target))
    newest_first = Window.partitionBy("key").orderBy(F.desc("offset"))
    newest = records.select(*_COLUMNS).withColumn("rank", F.row_number().over(newest_first)).where("rank = 1")
    newest.drop("rank").createOrReplaceTempView("newest")
    spark.sql(
        f"MERGE INTO delta.`{target}` AS state USING newest ON state.key = newest.key "
        "WHEN MATCHED AND newest.value IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND newest.value IS NOT NULL THEN INSERT *"
    )
    return spark.read.format("delta").load(str(target))


def generated_records(spark: SparkSession, records: int, keys: int, partitions: int = 4) -> DataFrame:
    """Updates of random keys with values of about 190 bytes; each key in one partition, offsets without gaps."""
    number = F.xxhash64("id").bitwiseAND((1 << 62) - 1) % F.lit(max(1, keys // partitions)) * partitions
    partition = F.col("id") % partitions
    key = F.concat(F.lit("user-"), (number + partition).cast("string"))
    value = F.concat(F.lit('{"userId":"'), key, F.lit('","seen":"'), F.repeat(F.md5(F.col("id").cast("string")), 4))
    return spark.range(records).select(
        key.cast("binary").alias("key"),
        F.concat(value, F.lit('"}')).cast("binary").alias("value"),
        partition.cast("int").alias("partition"),
        F.expr(f"id div {partitions}").alias("offset"),
        F.timestamp_millis(F.col("id")).alias("timestamp"),
    )


def _live(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("value").isNotNull())
