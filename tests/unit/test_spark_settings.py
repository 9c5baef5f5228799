"""The settings of a Spark session, without starting one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.spark.session.session import session
from lastword.spark.session.settings import session_settings

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


def settings_of(master: str, *, delta: bool = False, **given: str) -> dict[str, str]:
    """Settings in Python spelling: `spark_jars` is `spark.jars`."""
    dotted = {name.replace("_", "."): value for name, value in given.items()}
    return session_settings(master, JARS, dotted, delta=delta, ui=False)


def test_a_laptop_s_driver_is_on_loopback_and_sends_no_jars() -> None:
    settings = settings_of("local[*]")

    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.driver.extraClassPath"] == f"/jars/a.jar{os.pathsep}/jars/b.jar"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.ui.enabled"] == "false"
    assert "spark.jars" not in settings


def test_a_cluster_s_executors_fetch_the_jars_from_a_driver_that_they_can_reach() -> None:
    settings = settings_of("spark://127.0.0.1:7077,elsewhere:7077")

    assert settings["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in settings
    assert "spark.driver.memory" not in settings


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443", "spark://", "spark://host.invalid:7077"])
def test_where_the_way_is_not_known_the_driver_s_address_is_left_to_spark(master: str) -> None:
    assert "spark.driver.host" not in settings_of(master)


def test_workers_are_forked_from_ours_where_they_are_surely_of_this_python() -> None:
    daemon = "spark.python.daemon.module"

    assert settings_of("local[*]")[daemon] == "lastword.spark_daemon"
    assert daemon not in settings_of("local[*]", spark_pyspark_python="/usr/bin/python3")
    assert daemon not in settings_of("spark://127.0.0.1:7077")


def test_a_given_setting_wins() -> None:
    given = {"spark.sql.session.timeZone": "CET", "spark.ui.enabled": "true", "spark.driver.host": "10.0.0.1"}

    assert session_settings("local[2]", JARS, given, delta=False, ui=False).items() >= given.items()


def test_given_jars_and_extensions_are_added_to_ours() -> None:
    settings = settings_of(
        "spark://127.0.0.1:7077", delta=True, spark_jars="/mine.jar", spark_sql_extensions="com.example.Mine"
    )

    assert settings["spark.jars"] == "/jars/a.jar,/jars/b.jar,/mine.jar"
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,com.example.Mine"


def test_a_setting_that_is_not_spark_s_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadInput, match=r"Spark setting executor\.memory: Spark's settings start with spark\."):
        session(Connection(bootstrap_servers="host:9092"), settings={"executor.memory": "1g"})


def test_a_program_run_by_spark_submit_is_told_to_run_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    with pytest.raises(BadInput, match="run the program with python and not with spark-submit"):
        session(Connection(bootstrap_servers="host:9092"))
