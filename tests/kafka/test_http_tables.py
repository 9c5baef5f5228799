"""Pages, counts, short routes and how tables stand, over HTTP's service and a real topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.serve.tables.served_table import ServedTable
from support.service_calls import ask, served_table, service_of
from support.waiting import eventually

KEYS = ["a", "a/1", "a/2", "b", "c"]


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


@pytest.fixture
def users(connection: Connection, topic: str, tmp_path: Path) -> Iterator[ServedTable]:
    """The keys above with their own names as values, and one that was deleted."""
    table = Table(connection, topic)
    for key in [*KEYS, "deleted"]:
        table.put(key, key)
    ack = table.delete("deleted")
    made = served_table(connection, topic, tmp_path / "replica")
    with made.replica:
        made.replica.wait_for(ack)
        yield made


def keys_at(users: ServedTable, address: str) -> list[Any]:
    told = ask(service_of(users), address)
    assert told.status == 200, told.body
    return [row["key"] for row in told.json["rows"]]


def test_rows_come_in_key_order_with_their_place_and_the_position(users: ServedTable) -> None:
    told = ask(service_of(users), "/tables/users/rows")
    row = users.replica.row("a")
    assert row is not None
    assert [each["key"] for each in told.json["rows"]] == KEYS
    assert told.json["rows"][0] == {
        "key": "a",
        "value": "a",
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp,
    }
    assert (told.json["next"], told.json["position"]) == (None, str(users.replica.position))
    assert told.headers["x-lastword-position"] == told.json["position"]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("prefix=a", ["a", "a/1", "a/2"]),
        ("prefix=a%2F", ["a/1", "a/2"]),
        ("start=a%2F2", ["a/2", "b", "c"]),
        ("end=a%2F2", ["a", "a/1"]),
        ("prefix=a&start=a%2F1&end=a%2F2", ["a/1"]),
        ("start=c&end=a", []),
        ("prefix=z", []),
        ("prefix=&start=&end=", KEYS),
    ],
)
def test_rows_are_limited_by_prefix_start_and_end(users: ServedTable, query: str, keys: list[str]) -> None:
    assert keys_at(users, f"/tables/users/rows?{query}") == keys


@pytest.mark.parametrize("address", ["rows?limit=0&", "rows?cursor=x&", "rows/?"])
def test_what_can_never_be_answered_does_not_wait_for_a_position(users: ServedTable, address: str) -> None:
    assert ask(service_of(users, wait_s=60), f"/tables/users/{address}min_position=0:999").status == 400


def test_rows_of_numbers_are_listed_too(connection: Connection, topic: str, tmp_path: Path) -> None:
    ack = Table(connection, topic, key="int").put(7, "seven")
    made = served_table(connection, topic, tmp_path / "numbers", key="int")
    with made.replica:
        made.replica.wait_for(ack)
        assert keys_at(made, "/tables/users/rows") == [7]
        assert ask(service_of(made), "/tables/users/rows?prefix=7").code == "bad_query"


@pytest.mark.parametrize("query", ["", "&prefix=a", "&start=a%2F1&end=c"])
def test_pages_follow_each_other_without_loss_or_doubles(users: ServedTable, query: str) -> None:
    whole, service = keys_at(users, f"/tables/users/rows?{query}"), service_of(users)
    found, cursor = [], ""
    while True:
        told = ask(service, f"/tables/users/rows?limit=2{query}{cursor}").json
        found += [row["key"] for row in told["rows"]]
        if told["next"] is None:
            break
        assert len(told["rows"]) == 2
        cursor = f"&cursor={told['next']}"
    assert found == whole


def test_a_page_ends_before_it_grows_too_large_and_goes_on_from_there(users: ServedTable) -> None:
    service = service_of(users, page_bytes=1)
    told = ask(service, "/tables/users/rows").json
    assert [row["key"] for row in told["rows"]] == ["a"]
    assert ask(service, f"/tables/users/rows?cursor={told['next']}").json["rows"][0]["key"] == "a/1"


def test_a_cursor_that_was_altered_or_is_of_another_query_is_refused(users: ServedTable) -> None:
    service = service_of(users)
    cursor = ask(service, "/tables/users/rows?limit=1").json["next"]
    assert ask(service, f"/tables/users/rows?cursor={cursor}").status == 200
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "Q")
    for query in (f"cursor={altered}", f"cursor={cursor}&prefix=a", "cursor=", "cursor=%00", "cursor=AAAAAAAAAAA"):
        told = ask(service, f"/tables/users/rows?{query}")
        assert (told.status, told.code) == (400, "bad_cursor"), query


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "", "99999999999999999999"])
def test_a_limit_that_can_not_be_kept_is_refused_and_not_changed(users: ServedTable, limit: str) -> None:
    told = ask(service_of(users), f"/tables/users/rows?limit={limit}")
    assert (told.status, told.code) == (400, "bad_query")
    assert told.json["error"]["message"] == "limit must be between 1 and 1000"
    short = ask(service_of(users, page_rows=7), f"/users?limit={limit}")
    assert (short.status, short.json) == (400, {"error": "limit must be between 1 and 7"})


def test_the_count_is_exact(users: ServedTable) -> None:
    told = ask(service_of(users), "/tables/users/count")
    assert (told.json, told.headers["x-lastword-position"]) == ({"count": 5}, str(users.replica.position))


def test_the_short_routes_give_bare_values_and_a_count(users: ServedTable) -> None:
    service = service_of(users)
    assert ask(service, "/users").json == KEYS
    assert ask(service, "/users/a%2F1").json == "a/1"
    assert ask(service, "/users/count").json == {"count": 5}
    told = ask(service, "/users/nobody")
    assert (told.status, told.json) == (404, {"error": "the table users has no row of this key"})


def test_a_key_named_count_is_found_on_the_long_route_only(
    connection: Connection, topic: str, users: ServedTable
) -> None:
    service, ack = service_of(users), Table(connection, topic).put("count", "me")
    assert ask(service, f"/tables/users/rows/count?min_position={ack.position}").json["value"] == "me"
    assert ask(service, "/users/count").json == {"count": 6}


def test_the_short_list_links_to_its_next_page(users: ServedTable) -> None:
    service, address, found = service_of(users), "/users?limit=2", []
    while address:
        told = ask(service, address)
        found += told.json
        link = told.headers.get("link", "")
        assert not link or link.endswith('>; rel="next"')
        address = link[1:].partition(">")[0]
    assert found == KEYS


def test_only_a_table_with_the_option_short_has_short_routes(users: ServedTable) -> None:
    for paths, table in (("/people", users), ("/users", users._replace(short=False))):
        service = service_of(table)
        for path in (paths, f"{paths}/a", f"{paths}/count"):
            told = ask(service, path)
            assert (told.status, told.code) == (404, "no_such_route")
    service = service_of(users._replace(name="people"))
    assert (ask(service, "/people").json, ask(service, "/people/a").json) == (KEYS, "a")
    assert ask(service, "/people/count").json == {"count": 5}
    told = ask(service, "/people/nobody")
    assert (told.status, told.json) == (404, {"error": "the table people has no row of this key"})


def test_the_tables_are_listed_with_how_they_stand(users: ServedTable) -> None:
    service = service_of(users)
    told = ask(service, "/tables/users").json
    assert ask(service, "/tables").json == {"tables": [told]}
    assert told == {
        "name": "users",
        "topic": users.replica.topic,
        "topic_id": users.replica.ask(lambda store: store.topic_id),
        "key": "string",
        "value": "json",
        "partitions": 3,
        "rows": 5,
        "position": str(users.replica.position),
        "log_start": "0:0,1:0,2:0",
        "topic_log_start": "0:0,1:0,2:0",
        "lag": 0,
        "state": "ready",
        "why": None,
        "deletes": "certain",
    }


def test_a_process_is_healthy_before_its_tables_are_ready(
    connection: Connection, topic_name: str, users: ServedTable, tmp_path: Path
) -> None:
    away = served_table(connection, f"{topic_name}-away", tmp_path / "away", name="away", wait=False)
    with away.replica:
        eventually(lambda: away.replica.state.why is not None)
        service = service_of(users, away)
        assert ask(service, "/health").json == {"status": "ok"}
        told = ask(service, "/ready")
        assert (told.status, told.code, told.json["error"]["message"]) == (503, "not_ready", "1 of 2 tables are ready")
        stands = ask(service, "/tables/away")
        assert (stands.json["state"], stands.json["rows"]) == ("connecting", None)
        assert connection.bootstrap_servers not in stands.body.decode()
    assert ask(service_of(users), "/ready").json == {"ready": True}
