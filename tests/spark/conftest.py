"""The tests on Spark: its session has a login, and the command line takes that session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lastword.kafka.client.connection import Connection
from support.canary import CANARY
from support.in_process import InProcess


@pytest.fixture(scope="session")
def connection(connection: Connection) -> Connection:
    """To the tests' cluster, which asks for no login, with one all the same: its password must show nowhere."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "tester", "sasl.password": CANARY}
    # Else librdkafka remarks for every client that the login serves nothing.
    return replace(connection, properties={**login, "log_level": "3"})


@pytest.fixture
def verb(
    spark: SparkSession,
    connection: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[InProcess]:
    """The command line on the tests' cluster and session, without the seconds that another session would take."""
    settings = "".join(f"{name}={value}\n" for name, value in connection.properties.items())
    (tmp_path / "client.properties").write_text(settings)
    monkeypatch.setenv("LASTWORD_CONFIG", str(tmp_path / "client.properties"))
    monkeypatch.setenv("LASTWORD_BOOTSTRAP_SERVERS", connection.bootstrap_servers)
    monkeypatch.setenv("LASTWORD_HOME", str(tmp_path / "home"))
    # As in a session that the command line starts itself.
    spark.sparkContext.setLogLevel("OFF")
    yield InProcess(capsys=capsys)
    spark.sparkContext.setLogLevel("ERROR")
