"""The cluster over HTTP: what it is, how it was lately, and what is told when nobody answers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lastword.core.clock import now_ms
from lastword.kafka.connection import Connection
from lastword.kafka.local import LocalCluster
from lastword.kafka.topic_description import describe_topic
from lastword.kafka.topics import create_topic, delete_topic
from lastword.serve.running import Front, Running, Wanted, running
from lastword.serve.tokens import Tokens
from lastword.table import Table
from support.clusters_served import home_of, status_of, told
from support.waiting import eventually

TOKEN = "read-0123456789abcdef"  # noqa: S105


@pytest.fixture(scope="module")
def topics(connection: Connection) -> Iterator[tuple[str, str]]:
    """One of rows, and one in which two pipelines tell how they stand."""
    rows, statuses = (f"cluster-{uuid.uuid4().hex[:8]}-{what}" for what in ("rows", "status"))
    create_topic(connection, rows, partitions=3)
    create_topic(connection, statuses, partitions=1)
    with Table(connection, rows) as table:
        for number in range(30):
            table.put(f"user-{number % 10}", {"n": number})
    with Table(connection, statuses) as table:
        table.put("teams", status_of("teams", now_ms() + 600_000))
        table.put("older", status_of("older", now_ms() - 60_000))
    yield rows, statuses
    delete_topic(connection, rows)
    delete_topic(connection, statuses)


@pytest.fixture(scope="module")
def served(
    cluster: LocalCluster, topics: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder, wanted = tmp_path_factory.mktemp("served"), [f"users={topics[0]}", f"statuses={topics[1]}"]
    home = home_of(cluster, folder)
    with running(cluster.connection, [*map(Wanted.parse, wanted)], folder / "data", Front(port=0), home=home) as made:
        for table in made.tables:
            table.replica.wait_until_ready(30)
        eventually(lambda: cluster_at(made.url)["state"] == "connected")
        yield made


def cluster_at(url: str) -> Any:
    status, content = told(url, "/cluster")
    assert status == 200
    return content


def test_it_is_told_with_its_brokers_and_topics_as_kafka_has_them(
    connection: Connection, served: Running, topics: tuple[str, str]
) -> None:
    content = cluster_at(served.url)
    metadata = connection.reach()
    assert (content["cluster_id"], content["is_local"], content["why"]) == (metadata.cluster_id, True, None)
    assert content["brokers"] == [{"id": 1, "address": connection.bootstrap_servers}]
    (topic,) = [each for each in content["topics"] if each["name"] == topics[0]]
    described = describe_topic(connection, topics[0])
    assert {**topic, "records_per_s": 0} == {
        "name": topics[0],
        "topic_id": described.topic_id,
        "cleanup_policy": "compact",
        "partitions": 3,
        "replication": 1,
        "start_to_end": 30,
        "bytes": described.bytes_on_disk,
        "records_per_s": 0,
        "under_replicated": 0,
        "leaderless": 0,
        "tables": ["users"],
    }
    assert not [each["name"] for each in content["topics"] if each["name"].startswith("__")]


def test_a_topic_that_grows_has_a_rate_and_one_that_is_gone_is_not_told(
    connection: Connection, served: Running, topic_name: str
) -> None:
    def told_of() -> list[Any]:
        return [each for each in cluster_at(served.url)["topics"] if each["name"] == topic_name]

    create_topic(connection, topic_name, partitions=1)
    eventually(lambda: bool(told_of()))
    with Table(connection, topic_name) as table:
        for number in range(100):
            table.put("a", number)
    eventually(lambda: (told_of()[0]["records_per_s"] or 0) > 0)
    assert told_of()[0]["start_to_end"] == 100
    delete_topic(connection, topic_name)
    eventually(lambda: not told_of())


def test_pipelines_are_found_through_the_tables_that_have_their_status(served: Running) -> None:
    older, teams = cluster_at(served.url)["pipelines"]
    assert (older["app"], older["table"], older["state"]) == ("older", "statuses", "silent")
    assert teams["state"] == "running"
    assert (teams["source"], teams["emits"], teams["keeps"]) == ("new_users", ["actions"], ["team_stats"])
    assert (teams["rate"], teams["lag"], teams["batch"]["records"]) == (50.1, 12, 100)


def test_what_is_told_is_what_the_document_says(served: Running) -> None:
    components = told(served.url, "/openapi.json")[1]["components"]
    schema = {"$ref": "#/components/schemas/cluster", "components": components}
    content = cluster_at(served.url)
    jsonschema_rs.validate(schema, content)
    assert content["history"][0].keys() == {"at", "bytes", "lag"}
    # A schema that is not so is found out.
    del content["topics"][0]["leaderless"]
    assert not jsonschema_rs.is_valid(schema, content)


def test_with_tokens_it_needs_one(connection: Connection, topics: tuple[str, str], tmp_path: Path) -> None:
    front = Front(port=0, tokens=Tokens(reading=[TOKEN], writing=[]))
    with running(connection, [Wanted.parse(f"users={topics[0]}")], tmp_path, front) as made:
        assert told(made.url, "/cluster")[0] == 401
        assert told(made.url, "/cluster", authorization=f"Bearer {TOKEN}")[0] == 200
