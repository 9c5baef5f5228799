"""The records that make a table exactly a frame: new and different rows, and tombstones for the rest."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lastword.core.key_partition import partition_of

PUT, TOMBSTONE, UNCHANGED = "put", "tombstone", "unchanged"


def differences(wanted: DataFrame, live: DataFrame, partitions: int) -> DataFrame:
    """`kind`, `key`, `value`, `partition`, and `headers` if `wanted` has them: the table `live` becomes `wanted`.

    `live` has a row for each key and partition, `wanted` one for each key, where a null value is no row. A put goes
    where every writer puts its key (`partition` is null), a tombstone to where the row lives. So a key that lives in
    the wrong partition, or in several, has one row afterwards, in its own.
    """
    of_key = Window.partitionBy("key")
    places = live.select(
        "key",
        F.col("value").alias("old"),
        "partition",
        F.count(F.lit(1)).over(of_key).alias("places"),
        F.min("partition").over(of_key).alias("lowest"),
    )
    both = wanted.where(F.col("value").isNotNull()).join(places, "key", "full_outer")
    is_wanted, is_live, is_alone = F.col("value").isNotNull(), F.col("old").isNotNull(), F.col("places") == 1
    settled = is_wanted & is_live & is_alone & (F.col("value") == F.col("old"))
    # Computed in Python, by the function that all of lastword uses: so only for the few keys that need it.
    home = _home(partitions)(F.when(is_wanted & is_live & ~settled, F.col("key")))
    judged = both.withColumn("settled", F.coalesce(settled, F.lit(False))).withColumn("home", home)
    moved = F.col("partition") != F.col("home")
    is_put = is_wanted & ~F.col("settled") & (~is_live | (F.col("partition") == F.col("lowest")))
    is_tombstone = is_live & (~is_wanted | (~F.col("settled") & moved))
    headers = ["headers"] if "headers" in wanted.columns else []
    gone = [F.lit(None).cast(wanted.schema[name].dataType).alias(name) for name in headers]
    nothing, nowhere = F.lit(None).cast("binary").alias("value"), F.lit(None).cast("int").alias("partition")
    records = F.array(
        F.when(is_put, F.struct(F.lit(PUT).alias("kind"), F.col("value"), nowhere, *headers)),
        F.when(is_tombstone, F.struct(F.lit(TOMBSTONE).alias("kind"), nothing, F.col("partition"), *gone)),
        F.when(F.col("settled"), F.struct(F.lit(UNCHANGED).alias("kind"), nothing, nowhere, *gone)),
    )
    return judged.select("key", F.explode(F.array_compact(records)).alias("record")).select("key", "record.*")


def _home(partitions: int) -> Callable[[Column], Column]:
    return F.udf(lambda key: None if key is None else partition_of(bytes(key), partitions), "int", useArrow=False)
