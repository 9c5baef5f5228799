"""Spark's first start on a machine, ahead of the first query: it leaves the class archive that later starts use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
from pyspark.sql import SparkSession

from lastword.jvm.jars import spark_jar_lock
from lastword.jvm.java import Java
from lastword.kafka.client.connection import Connection
from lastword.spark.reading.fold import shown_rows
from lastword.spark.reading.json_columns import as_columns
from lastword.spark.reading.packed_rows import HEADERS_TYPE
from lastword.spark.session.driver import spark_archive
from lastword.spark.session.failures import one_line_failures
from lastword.spark.session.session import session
from lastword.spark.session.shutdown import stop

# Nothing here reads a topic, so no cluster is needed.
_NO_CLUSTER = Connection(bootstrap_servers="127.0.0.1:1")
# The JVM lives for seconds, and the archive it leaves does not depend on how its code was compiled.
_QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.log.level": "OFF"}


def take_first_start(java: Java, cache: Path, jars: tuple[Path, ...], report: Callable[[str], None]) -> None:
    """Starts Spark once with the jars of a cache and stops it, unless its class archive is there, or can't be kept."""
    if spark_archive(java, cache.absolute(), spark_jar_lock().folder_name, jars).unfinished is None:
        return
    report("preparing Spark, once: it then starts in half the time")
    # Its workers complain on stderr when they end with the JVM. A real failure here is raised as a LastwordError.
    with _silent_children():
        spark = session(_NO_CLUSTER, master="local[1]", settings=_QUICK, jars=cache)
        try:
            with one_line_failures("preparing Spark"):
                _load_classes(spark)
        finally:
            stop(spark)


@contextmanager
def _silent_children() -> Iterator[None]:
    """Processes that are started in the block, and their children, write no standard error."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)


def _load_classes(spark: SparkSession) -> None:
    """Does once, on tiny data, what reading tables and queries over them do."""
    spark.read.format("kafka").option("kafka.bootstrap.servers", _NO_CLUSTER.bootstrap_servers).option(
        "subscribe", "none"
    ).load()
    table = pyarrow.table({"key": ["a", "b"], "value": ['{"n": 1}', '{"n": 2}'], "partition": [0, 1], "offset": [0, 0]})
    rows = spark.createDataFrame(table).mapInArrow(
        lambda batches: batches, "key string, value string, partition long, offset long"
    )
    more = ("key AS raw_key", "now() AS timestamp", f"CAST(NULL AS {HEADERS_TYPE}) AS headers", "'' AS decode_error")
    table_rows = shown_rows(rows.selectExpr("*", *more), "raw_key")
    as_columns(table_rows.persist(), None).createOrReplaceTempView("rows")
    spark.sql(
        "SELECT n, count(*) AS rows, max(timestamp) FROM rows GROUP BY n HAVING n > 0 ORDER BY rows LIMIT 9"
    ).collect()
    spark.sql("SELECT DISTINCT a.key, to_json(struct(b.*)) FROM rows a JOIN rows b ON a.key = b.key").toPandas()
