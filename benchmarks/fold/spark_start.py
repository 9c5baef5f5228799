"""A process that starts a Spark session and reads its first table: with lastword's session, or with plain settings.

python -m benchmarks.fold.spark_start lastword|plain HOST:PORT TOPIC JARS
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from lastword.kafka.client.connection import Connection


def count_rows(how: str, servers: str, topic: str, jars: Path) -> int:
    if how == "lastword":
        from lastword.spark import read_table, stop
        from lastword.spark.session.session import session

        spark = session(Connection(bootstrap_servers=servers), jars=jars)
        rows = len(read_table(spark, topic).collect())
        stop(spark)
        return rows
    from pyspark.sql import SparkSession

    from benchmarks.fold.recipes import row_number
    from lastword.jvm.jars import ensure_jars, spark_jar_lock
    from lastword.jvm.java import find_java

    paths = ensure_jars(spark_jar_lock(), jars, find_java(), lambda _: None)
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, paths)))
        .getOrCreate()
    )
    records = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    rows = len(row_number(records).collect())
    spark.stop()
    return rows


if __name__ == "__main__":
    _, how, servers, topic, jars = sys.argv
    print(json.dumps({"rows": count_rows(how, servers, topic, Path(jars))}))
