"""The password of a connection reaches Kafka's client in the JVM, and shows in nothing that people look at."""

from __future__ import annotations

import socket
import subprocess
import urllib.request

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.spark import read_changes, read_records
from lastword.spark.session.client_settings import java_settings
from support.canary import CANARY


def test_a_read_that_needs_the_password_works(spark: SparkSession, users: Table) -> None:
    users.put("user-1", {"name": "Alice"})

    assert [bytes(row.key) for row in read_records(spark, users.topic).collect()] == [b"user-1"]


def test_kafka_s_client_in_the_jvm_finds_the_password(spark: SparkSession, connection: Connection) -> None:
    jvm = SparkContext._jvm
    assert jvm is not None
    properties = jvm.java.util.Properties()
    for name, value in java_settings(connection).options.items():
        properties.put(name, value)
    for name in ("key.deserializer", "value.deserializer"):
        properties.put(name, "org.apache.kafka.common.serialization.ByteArrayDeserializer")

    config = jvm.org.apache.kafka.clients.consumer.ConsumerConfig(properties)

    login = config.getPassword("sasl.jaas.config").value()
    assert login.endswith(f'username="tester" password="{CANARY}";')


def test_no_plan_shows_it(spark: SparkSession, users: Table, capsys: pytest.CaptureFixture[str]) -> None:
    users.put("user-1", {"name": "Alice"})
    for frame in (read_records(spark, users.topic), read_changes(spark, users.topic)):
        frame.explain(True)

        plan = capsys.readouterr().out
        assert "kafka" in plan.lower()
        assert CANARY not in plan


def test_the_configuration_does_not_show_it(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf().getAll()

    assert ("spark.app.name", "lastword") in conf
    assert CANARY not in str(conf)
    assert CANARY not in spark.sparkContext._jsc.sc().getConf().toDebugString()
    assert CANARY not in str(spark.sql("SET -v").collect())


def test_the_command_line_of_the_jvm_does_not_show_it(spark: SparkSession) -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    shown = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(gateway.proc.pid)], capture_output=True, text=True)

    assert "SparkSubmit" in shown.stdout
    assert CANARY not in shown.stdout


def test_the_ui_does_not_show_it_and_is_on_loopback_only(spark: SparkSession, users: Table) -> None:
    users.put("user-1", {"name": "Alice"})
    read_records(spark, users.topic).collect()
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    assert url.startswith("http://127.0.0.1:")

    for page in ("/environment/", "/SQL/", "/api/v1/applications"):
        with urllib.request.urlopen(url + page, timeout=30) as answer:  # noqa: S310 - the address is ours
            assert CANARY not in answer.read().decode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        # An address of this machine that others see; nothing is sent.
        towards.connect(("192.0.2.1", 9))
        outside = towards.getsockname()[0]
    assert outside != "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((outside, int(url.rpartition(":")[2])), timeout=10)
