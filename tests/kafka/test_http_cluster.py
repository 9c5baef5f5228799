"""The cluster over HTTP: what it is, how it was lately, and what is told when nobody answers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import jsonschema_rs
import pytest

from lastword.api.table import Table
from lastword.core.clock import now_ms
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import describe_topic
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from support.cluster_routes import home_of, json_answer, status_of
from support.compacted_logs import write
from support.waiting import eventually

TOKEN = "read-0123456789abcdef"  # noqa: S105


@pytest.fixture(scope="module")
def topics(connection: Connection) -> Iterator[tuple[str, str]]:
    """One of rows, and one in which a pipeline tells how it stands."""
    rows, statuses = (f"cluster-{uuid.uuid4().hex[:8]}-{what}" for what in ("rows", "status"))
    create_topic(connection, rows, partitions=3)
    create_topic(connection, statuses, partitions=1)
    with Table(connection, rows) as table:
        for number in range(29):
            table.put(f"user-{number % 10}", {"n": number})
        table.delete("user-9")
    with Table(connection, statuses) as table:
        table.put("a-note", {"of": "something else"})
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
    with running(
        cluster.connection, [*map(TableToServe.parse, wanted)], folder / "data", Front(port=0), home=home
    ) as made:
        for table in made.tables:
            table.replica.wait_until_ready(120)
        eventually(lambda: cluster_at(made.url)["state"] == "connected")
        yield made


def cluster_at(url: str) -> Any:
    status, content = json_answer(url, "/cluster")
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
    eventually(lambda: bool(told_of()[0]["start_to_end"] == 100))
    delete_topic(connection, topic_name)
    eventually(lambda: not told_of())


def test_pipelines_are_found_through_the_tables_that_have_their_status(
    connection: Connection, served: Running, topics: tuple[str, str]
) -> None:
    with Table(connection, topics[1]) as table:
        table.put("teams", status_of("teams", now_ms()))
    eventually(lambda: len(cluster_at(served.url)["pipelines"]) == 2)
    older, teams = cluster_at(served.url)["pipelines"]
    assert (older["app"], older["table"], older["state"]) == ("older", "statuses", "silent")
    assert teams["state"] == "running"
    assert (teams["source"], teams["emits"], teams["keeps"]) == ("new_users", ["actions"], ["team_stats"])
    assert (teams["rate"], teams["lag"], teams["batch"]["records"]) == (50.1, 12, 100)


def topic_at(url: str, name: str) -> Any:
    status, content = json_answer(url, f"/topics/{name}")
    assert status == 200
    return content


def counted(url: str, name: str) -> Any:
    """A topic as it is told once it was counted."""
    eventually(lambda: topic_at(url, name)["census"] is not None)
    return topic_at(url, name)


def test_a_topic_is_told_with_what_stands_in_it(
    connection: Connection, served: Running, topics: tuple[str, str]
) -> None:
    content, described = counted(served.url, topics[0]), describe_topic(connection, topics[0])
    census = content["census"]
    assert census["at"] <= now_ms()
    assert {**census, "at": 0} == {
        "at": 0,
        "records": 30,
        "live_keys": 9,
        "tombstones": 1,
        "obsolete": 20,
        "obsolete_share": 0.6667,
        "duplicate_factor": 3.3333,
        "tombstone_share": 0.0333,
    }
    assert (content["tables"], content["rows"], content["census_why"]) == (["users"], {"users": 9}, None)
    assert (content["state"], content["cleanup_policy"]) == ("connected", "compact")
    assert content["bytes"] == described.bytes_on_disk
    for partition, there in zip(content["partitions"], described.partitions, strict=True):
        assert (partition["start"], partition["end"], partition["stable"]) == (0, there.end_offset, there.stable_offset)
        assert (partition["leader"], partition["replicas"], partition["in_sync"]) == (1, [1], [1])
        assert (partition["records"], partition["bytes"]) == (there.end_offset, there.bytes_on_disk)
    assert content["settings"]["cleanup.policy"] == {"value": "compact", "source": "topic"}
    assert content["settings"]["segment.ms"]["source"] == "default"
    assert "flush.ms" not in content["settings"]
    assert content["history"][0].keys() == {"at", "bytes", "end", "lag"}


def test_a_topic_that_is_not_compacted_and_not_served_is_counted_too(
    connection: Connection, served: Running, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "delete"})
    write(connection, topic_name, [("a", "1"), ("a", "2"), ("b", None)])
    eventually(lambda: json_answer(served.url, f"/topics/{topic_name}")[0] == 200)
    content = counted(served.url, topic_name)
    assert (content["cleanup_policy"], content["tables"], content["rows"]) == ("delete", [], {})
    census = content["census"]
    assert [census[name] for name in ("records", "live_keys", "tombstones")] == [3, 1, 1]
    # Nothing takes the older record of a.
    assert [census[name] for name in ("obsolete", "obsolete_share", "duplicate_factor")] == [None, None, None]
    assert content["partitions"][0]["obsolete"] is None
    components = json_answer(served.url, "/openapi.json")[1]["components"]
    jsonschema_rs.validate({"$ref": "#/components/schemas/TopicAnswer", "components": components}, content)


def test_each_record_is_the_last_word_of_a_key_or_obsolete(
    connection: Connection, served: Running, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, [("a", "1"), ("a", None), ("a", "2"), ("b", None), ("b", None), ("c", "1")])
    eventually(lambda: json_answer(served.url, f"/topics/{topic_name}")[0] == 200)
    content = counted(served.url, topic_name)
    for numbers in (content["census"], content["partitions"][0]):
        found = [numbers[name] for name in ("live_keys", "tombstones", "obsolete", "records")]
        assert found == [2, 1, 3, 6]


@pytest.mark.parametrize("name", ["nowhere", "__consumer_offsets", "%C3%A9"])
def test_a_topic_that_the_cluster_does_not_show_is_not_found(served: Running, name: str) -> None:
    status, content = json_answer(served.url, f"/topics/{name}")
    assert (status, content["error"]["code"]) == (404, "no_such_topic")


def test_what_is_told_is_what_the_document_says(served: Running, topics: tuple[str, str]) -> None:
    components = json_answer(served.url, "/openapi.json")[1]["components"]
    of_topic = {"$ref": "#/components/schemas/TopicAnswer", "components": components}
    jsonschema_rs.validate(of_topic, counted(served.url, topics[0]))
    assert not jsonschema_rs.is_valid(of_topic, {**topic_at(served.url, topics[0]), "state": "connecting"})
    schema = {"$ref": "#/components/schemas/ClusterAnswer", "components": components}
    content = cluster_at(served.url)
    jsonschema_rs.validate(schema, content)
    assert content["history"][0].keys() == {"at", "bytes", "lag"}
    # A schema that is not so is found out.
    del content["topics"][0]["leaderless"]
    assert not jsonschema_rs.is_valid(schema, content)


def test_with_tokens_it_needs_one(connection: Connection, topics: tuple[str, str], tmp_path: Path) -> None:
    front = Front(port=0, tokens=Tokens(reading=[TOKEN], writing=[]))
    with running(connection, [TableToServe.parse(f"users={topics[0]}")], tmp_path, front) as made:
        assert json_answer(made.url, "/cluster")[0] == 401
        assert json_answer(made.url, f"/topics/{topics[0]}")[0] == 401
        assert json_answer(made.url, "/cluster", authorization=f"Bearer {TOKEN}")[0] == 200


def test_the_lag_of_a_table_that_follows_no_more_is_not_known(
    connection: Connection, topics: tuple[str, str], tmp_path: Path
) -> None:
    with running(connection, [TableToServe.parse(f"users={topics[0]}")], tmp_path, Front(port=0)) as made:
        (table,) = made.tables
        table.replica.wait_until_ready(120)
        before = table.lag
        table.replica.close()
        assert (before, table.replica.state.name, table.lag) == (0, "failed", None)
        with urlopen(f"{made.url}/metrics", timeout=15) as answer:  # noqa: S310
            told_of = [line for line in answer.read().decode().splitlines() if line.startswith("lastword_lag_offsets")]
        assert told_of == []
