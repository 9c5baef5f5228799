"""The law in Spark: the newest record of each key, as pure transformations of any records, from Kafka or from files.

Records need the columns `key`, `value`, `partition`, `offset` and `timestamp`, and may have `headers`. The fold goes
over them twice, like Kafka's own cleaner: the first pass finds the newest offset of each key, from keys and offsets
alone, and marks it in a map of bits; the second drops every record whose bit is not set. What is left, the newest
records and a few that share a bit with one, is sorted: so no value that was overwritten crosses a shuffle, and a
shared bit can't cost a key.

There is a second fold, `partition_fold`, for a table that is read from Kafka: it shuffles and sorts nothing, but needs
all records of a partition in offset order, which records from files do not have. `shown_rows` here serves both.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lastword.core.split_keys import TIE_BREAK
from lastword.spark.reading.records import HEADERS, has_headers

TABLE_COLUMNS = ("key", "value", "partition", "offset", "timestamp")

# The size of the map that every task gets, in words of 64 bits. With more than 64 records for each word, records begin
# to share bits, and more of them are sorted.
MAP_WORDS = 1 << 20
# Spreads the partitions over the map: their offsets all start at 0.
_STRIDE = 2_654_435_761
# The first sort column: Spark compares the first eight bytes quickly, but many keys begin with the same eight bytes.
_HASH = "__hash"


def newest_per_key(records: DataFrame, *, map_words: int = MAP_WORDS) -> DataFrame:
    """One row for each live key: within a partition the highest offset wins and a null value removes the key.

    A key with live rows in two partitions shows the one with the later (timestamp, partition). Records without a key
    are no rows, and a record that comes twice counts once. The columns are those of a table, with `headers` if the
    records have them as Spark's connector does; others are dropped.
    """
    columns = _columns(records)
    keyed = records.where(F.col("key").isNotNull()).select(*columns)
    newest = keyed.groupBy("key", "partition").agg(F.max("offset").alias("offset"))
    marks = newest.groupBy(_word(map_words).alias("word")).agg(F.bit_or(_bit()).alias("bits"))
    marked = keyed.withColumn("word", _word(map_words)).join(F.broadcast(marks), "word", "inner")
    return _sorted_fold(marked.where(F.col("bits").bitwiseAND(_bit()) != 0).select(*columns))


def merge(state: DataFrame, changes: DataFrame) -> DataFrame:
    """The table `state`, as `newest_per_key` gives it, after `changes`; both may contain the same records."""
    before, after = (frame.select(*_columns(frame)) for frame in (state, changes))
    return newest_per_key(before.unionByName(after, allowMissingColumns=True))


def shown_rows(rows: DataFrame, key: str) -> DataFrame:
    """The one row that each key shows, of the live rows that it has in several partitions."""
    latest_first = Window.partitionBy(_HASH, key).orderBy(*map(F.desc, TIE_BREAK))
    # Not row_number() = 1, for which Spark would sort before the shuffle too: here most keys have one row.
    later = F.lag("partition").over(latest_first)
    hashed = rows.withColumn(_HASH, F.xxhash64(key))
    return hashed.withColumn("later", later).where(F.col("later").isNull()).drop("later", _HASH)


def _sorted_fold(keyed: DataFrame) -> DataFrame:
    """The law on any number of records: a sort spills to the disk."""
    newest_first = Window.partitionBy(_HASH, "key").orderBy("partition", F.desc("offset"))
    of_key = Window.partitionBy(_HASH, "key").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    is_newest = ~F.lag("partition").over(newest_first).eqNullSafe(F.col("partition"))
    # A tombstone must first beat the values it deletes, and only then is it no row.
    place = F.struct(*TIE_BREAK)
    candidate = F.when(F.col("is_newest") & F.col("value").isNotNull(), place)
    hashed = keyed.withColumn(_HASH, F.xxhash64("key"))
    folded = hashed.withColumn("is_newest", is_newest).withColumn("shown", F.max(candidate).over(of_key))
    return folded.where(F.col("is_newest") & F.col("value").isNotNull() & (F.col("shown") == place)).select(
        *keyed.columns
    )


def _columns(frame: DataFrame) -> tuple[str, ...]:
    return (*TABLE_COLUMNS, HEADERS) if has_headers(frame) else TABLE_COLUMNS


def _word(map_words: int) -> Column:
    """The word of the map for a record's offset: neighbours share a word, so that few words are in use."""
    spread = F.col("partition").cast("long") * F.lit(_STRIDE)
    return F.pmod(F.shiftright("offset", 6) + spread, F.lit(map_words).cast("long"))


def _bit() -> Column:
    return F.call_function("shiftleft", F.lit(1).cast("long"), F.col("offset").bitwiseAND(63).cast("int"))
