from __future__ import annotations

from pyspark.sql import SparkSession

from lastword.kafka.connection import Connection
from lastword.spark.session import connection_of, session


def test_a_session_runs_and_knows_its_cluster(spark: SparkSession, connection: Connection) -> None:
    assert spark.range(10).count() == 10
    assert connection_of(spark) == connection


def test_a_second_session_for_the_same_cluster_is_the_first_one(spark: SparkSession, connection: Connection) -> None:
    assert session(connection).sparkContext is spark.sparkContext
