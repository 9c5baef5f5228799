"""A real cluster for the tests that ask for it: started once, on free ports, gone with the test run."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from lastword.api.table import Table
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import list_topics
from support.command_line import JARS, CommandLine
from support.processes import started_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a generated example takes says more about the machine than about the code.
settings.register_profile("lastword", deadline=None)
settings.load_profile("lastword")

# A shell starts what runs in its background with Ctrl-C ignored, and children would inherit that: some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A broker starts in seconds, and takes a minute where a dozen others start beside it.
BUSY_START_S = 240.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--security", choices=["open", "scram", "scram-tls"], default="open", help="of the cluster that tests share"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--security") != "open":
        passed_over = [item for item in items if item.get_closest_marker("open")]
        config.hook.pytest_deselected(items=passed_over)
        items[:] = [item for item in items if item not in passed_over]


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Whatever the tests of this process start inherits a mark, and none that has it may run when they are over."""
    name, mark = "STARTED_BY_TESTS", uuid.uuid4().hex
    os.environ[name] = mark
    yield
    del os.environ[name]
    # What ends with its owner may need a moment after it.
    deadline = time.monotonic() + 10
    while (left := started_with(f"{name}={mark}")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Open, or as `--security` says: what works on one of them works on the others."""
    folder = tmp_path_factory.mktemp("cluster")
    with LocalCluster(
        name="tests", folder=folder, jars=JARS, owned=True, temporary=True, ready_timeout_s=BUSY_START_S
    ) as local:
        local.start(port=0, security=request.config.getoption("--security"))
        yield local


@pytest.fixture(scope="session")
def connection(cluster: LocalCluster) -> Connection:
    return cluster.connection


@pytest.fixture(scope="session")
def spark(connection: Connection) -> Iterator[SparkSession]:
    """One Spark session for all tests that ask for it, on the tests' cluster."""
    from lastword.spark import stop
    from lastword.spark.session.session import session

    made = session(
        connection,
        # A task may fail once.
        master="local[2,2]",
        delta=True,
        # Small tables: more tasks than cores would only cost time.
        settings={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"},
        ui=True,
    )
    scratch = made.sparkContext.getConf().get("spark.local.dir")
    yield made
    stop(made)
    assert scratch is not None
    assert not Path(scratch).exists()


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster that the tests of a file stop, kill and start; each leaves it running."""
    folder = tmp_path_factory.mktemp("fragile")
    with LocalCluster(
        name="fragile", folder=folder / "cluster", jars=JARS, owned=True, ready_timeout_s=BUSY_START_S
    ) as cluster:
        cluster.start(port=0)
        yield cluster


@pytest.fixture
def topic_name(connection: Connection) -> Iterator[str]:
    """A name that no other test uses; a topic of that name is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    if any(topic.name == name for topic in list_topics(connection)):
        delete_topic(connection, name)


@pytest.fixture
def users(connection: Connection, topic_name: str) -> Iterator[Table]:
    """An empty table with three partitions."""
    create_topic(connection, topic_name, partitions=3)
    with Table(connection, topic_name) as table:
        yield table


@pytest.fixture
def lastword(cluster: LocalCluster, connection: Connection, tmp_path: Path) -> CommandLine:
    """The command line, pointed at the tests' cluster."""
    config = {} if cluster.client_file is None else {"LASTWORD_CONFIG": str(cluster.client_file)}
    servers = {"LASTWORD_BOOTSTRAP_SERVERS": connection.bootstrap_servers}
    return CommandLine(home=tmp_path / "home", environ={**servers, **config})


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line with no cluster at all; one that a test starts is stopped afterwards."""
    line = CommandLine(home=tmp_path / "home")
    yield line
    if (line.home / "up").exists():
        line.run("down")
    for folder in (line.home / "clusters").glob("*"):
        LocalCluster(name=folder.name, folder=folder, jars=JARS).stop()
