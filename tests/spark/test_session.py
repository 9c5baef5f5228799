from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, StorageLevel
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.spark.session.session import connection_of, session


def test_a_session_runs_and_knows_its_cluster(spark: SparkSession, connection: Connection) -> None:
    assert spark.range(10).count() == 10
    assert connection_of(spark) == connection


@pytest.mark.quick
def test_what_spark_moves_to_the_disk_is_where_nobody_else_gets_in(spark: SparkSession) -> None:
    rows = spark.range(10_000).persist(StorageLevel.DISK_ONLY)
    assert rows.count() == 10_000
    scratch = Path(spark.conf.get("spark.local.dir") or "")
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert any(path.is_file() and path.name.startswith("rdd_") for path in scratch.glob("blockmgr-*/*/*"))
    rows.unpersist()


def test_a_second_session_for_the_same_cluster_is_the_first_one(spark: SparkSession, connection: Connection) -> None:
    assert session(connection).sparkContext is spark.sparkContext


def test_a_second_session_for_another_cluster_is_refused(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match=r"for another cluster runs in this process: stop it first, with  lastword"):
        session(Connection(bootstrap_servers="another:9092"))


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ({"master": "local[1]"}, r"at the master local\[2,2\]"),
        ({"settings": {"spark.driver.memory": "3g"}}, r"with another spark\.driver\.memory"),
    ],
)
def test_what_the_running_session_lacks_is_refused(
    spark: SparkSession, connection: Connection, asked: dict[str, Any], other: str
) -> None:
    with pytest.raises(BadInput, match=rf"a Spark session {other} runs in this process: stop it first"):
        session(connection, **asked)


def test_what_the_running_session_has_may_be_asked_for_again(spark: SparkSession, connection: Connection) -> None:
    again = session(connection, master="local[2,2]", delta=True, settings={"spark.driver.memory": "1g"})

    assert again.sparkContext is spark.sparkContext


def test_settings_reach_spark_and_its_jvm(spark: SparkSession) -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    command = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(gateway.proc.pid)], capture_output=True, text=True)

    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "-Xmx1g" in command.stdout.split()


def test_workers_have_all_loaded_before_they_are_forked(spark: SparkSession) -> None:
    def told(_: object) -> Iterator[tuple[str, str, bool]]:
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_text()
        yield parent, str(sys.modules["pyspark"].__file__), "confluent_kafka" in sys.modules

    ((parent, place, has_client),) = spark.sparkContext.parallelize([0], 1).mapPartitions(told).collect()

    assert "lastword.spark_daemon" in parent
    assert Path(place).is_file()  # and in no zip
    assert has_client


def test_an_address_is_no_connection() -> None:
    address: Any = "127.0.0.1:9092"
    with pytest.raises(BadInput, match="give a connection, like  lastword"):
        session(address)
