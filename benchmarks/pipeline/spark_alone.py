"""A process that runs the rules of the pipeline with Spark alone.

    python -m benchmarks.pipeline.spark_alone sink|scan FILE HOST:PORT JARS FOLDER

sink: a streaming query over all records, into Spark's Kafka sink, which writes at least once. The counters come from
the same pass and are written at the end. scan: the source is read and parsed, and nothing else. Both use lastword's
session and source options. The clock runs from the start of the query to its end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lastword.kafka.client.connection import Connection
from lastword.pipeline.evaluation.names_in_sql import with_name
from lastword.pipeline.plan.plan import Pipeline, Rule
from lastword.pipeline.plan.plan_file import read_plan
from lastword.spark import stop
from lastword.spark.reading.records import source_options
from lastword.spark.session.client_settings import java_settings
from lastword.spark.session.session import session

# As the producers of the pipeline.
_PRODUCER = {"compression.type": "lz4", "linger.ms": "20", "batch.size": str(1024**2)}
_COUNTS = "counts"


def scan(spark: SparkSession, plan: Pipeline, options: dict[str, str]) -> None:
    records = spark.read.format("kafka").options(**options).load()
    users(records, plan).write.format("noop").mode("overwrite").save()


def sink(spark: SparkSession, plan: Pipeline, options: dict[str, str], target: dict[str, str], folder: Path) -> None:
    records = spark.readStream.format("kafka").options(**options, startingOffsets="earliest").load()
    writer = matches(users(records, plan), plan.rules).writeStream.format("kafka").options(**target)
    writer = writer.option("topic", plan.rules[0].to).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    counts = [batch.observedMetrics[_COUNTS] for batch in query.recentProgress if _COUNTS in batch.observedMetrics]
    sums = {name: sum(count[name] for count in counts) for name in ("users", *(rule.name for rule in plan.rules))}
    rows = [
        (rule.name, json.dumps({"team": rule.name, "processed": sums["users"], "flagged": sums[rule.name]}))
        for rule in plan.rules
    ]
    stats = spark.createDataFrame(rows, "key string, value string").coalesce(1)
    stats.write.format("kafka").options(**target).option("topic", plan.tables[0].topic).save()


def users(records: DataFrame, plan: Pipeline) -> DataFrame:
    return records.select(F.from_json(F.col("value").cast("string"), plan.source.schema).alias("user")).select("user.*")


def matches(users: DataFrame, rules: tuple[Rule, ...]) -> DataFrame:
    """The values to write; the matches of each rule are counted in the same pass."""
    judged = users.select("*", *[F.expr(rule.when).alias(rule.name) for rule in rules])
    counted = judged.observe(
        _COUNTS, F.count(F.lit(1)).alias("users"), *[F.count_if(_holds(rule)).alias(rule.name) for rule in rules]
    )
    values = F.array_compact(F.array(*[F.when(_holds(rule), _value(rule)) for rule in rules]))
    return counted.select(F.explode(values).alias("value"))


def _holds(rule: Rule) -> Column:
    return F.col(f"`{rule.name}`")


def _value(rule: Rule) -> Column:
    fields = [F.expr(with_name(text, "rule", f"'{rule.name}'")).alias(name) for name, text in rule.value.items()]
    return F.to_json(F.struct(*fields))


def seconds_of(what: str, file: str, connection: Connection, jars: Path, folder: Path) -> float:
    plan = read_plan(file).pipeline
    spark = session(connection, jars=jars, settings={"spark.log.level": "OFF"})
    options = {**source_options(connection), "includeHeaders": "false", "subscribe": plan.source.topic}
    client = {**_PRODUCER, **java_settings(connection).options}
    began = time.monotonic()
    if what == "scan":
        scan(spark, plan, options)
    else:
        sink(spark, plan, options, {f"kafka.{name}": value for name, value in client.items()}, folder)
    seconds = time.monotonic() - began
    stop(spark)
    return seconds


if __name__ == "__main__":
    _, what, file, servers, jars, folder = sys.argv
    connection = Connection(bootstrap_servers=servers)
    print(json.dumps({"seconds": seconds_of(what, file, connection, Path(jars), Path(folder))}))
