"""Scenario A over HTTP: two instances of a profile store, written to through either, killed, compacted, in sync."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.demo.people import (
    EVERYONE,
    FIRST_FIVE,
    LAST_FIVE,
    LIVE_UPDATE,
    PARTITIONS,
    TOPIC_SETTINGS,
    UPDATES,
    Profile,
)
from lastword.demo.people import profile as profile_of
from lastword.kafka.client.connection import Connection
from lastword.processes.ports import is_free
from support.command_line import CommandLine
from support.replicas import log_now
from support.serve_instance import Instance


def port_or_any(port: int) -> int:
    """The scenario's own port where nobody else has it."""
    return port if is_free(port) else 0


class Store:
    """The two instances as one service, and the topic under them."""

    def __init__(self, lastword: CommandLine, connection: Connection, topic: str, folder: Path) -> None:
        self.lastword = lastword
        self.connection = connection
        self.topic = topic
        self.one = Instance(lastword, folder / "one", f"users={topic}", port=port_or_any(8090))
        self.two = Instance(lastword, folder / "two", f"users={topic}", port=port_or_any(8091))

    def records(self) -> int:
        return len(log_now(self.connection, self.topic))

    def versions(self) -> dict[str, int]:
        """By key, what the log still has of it; each key once."""
        log = log_now(self.connection, self.topic)
        assert len({record.key for record in log}) == len(log)
        return {(record.key or b"").decode(): json.loads(record.value or b"{}")["version"] for record in log}

    def compact(self) -> None:
        self.lastword("topic", "compact", self.topic)


@pytest.fixture
def store(lastword: CommandLine, connection: Connection, topic_name: str, tmp_path: Path) -> Iterator[Store]:
    settings = [word for name, value in TOPIC_SETTINGS.items() for word in ("--set", f"{name}={value}")]
    topic = topic_name.replace("test", "user-profiles", 1)
    lastword("topic", "create", topic, "--partitions", str(PARTITIONS), *settings)
    made = Store(lastword, connection, topic, tmp_path)
    with made.one, made.two:
        yield made
    lastword("topic", "delete", topic)


def put(instance: Instance, key: str, value: Any) -> str:
    """The position of a write."""
    told = instance.ask(f"/tables/users/rows/{key}", "PUT", json.dumps(value).encode())
    assert told.status == 200, told
    assert told.json["position"] == f"{told.json['partition']}:{told.json['offset'] + 1}"
    return str(told.json["position"])


def delete(instance: Instance, key: str) -> str:
    told = instance.ask(f"/tables/users/rows/{key}", "DELETE")
    assert told.status == 200, told
    return str(told.json["position"])


def post(instance: Instance, profiles: Iterable[Profile]) -> str:
    """The position of several writes."""
    lines = [json.dumps({"key": profile["userId"], "value": profile}) for profile in profiles]
    told = instance.ask("/tables/users/rows", "POST", "\n".join(lines).encode())
    assert (told.status, told.json["written"]) == (200, len(lines))
    return str(told.json["position"])


def newest(profiles: Sequence[Profile]) -> list[Profile]:
    """The last word on each, in key order."""
    by_id = {profile["userId"]: profile for profile in profiles}
    return [by_id[key] for key in sorted(by_id)]


def rows_and_position(instance: Instance) -> tuple[list[dict[str, Any]], Position]:
    told = instance.ask("/tables/users/rows").json
    assert told["next"] is None
    return told["rows"], Position.parse(told["position"])


def the_law(store: Store, upto: Position) -> list[dict[str, Any]]:
    """The rows that the reference fold makes of the log before a position."""
    return [
        {
            "key": key.decode(),
            "value": json.loads(record.value or b""),
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
        }
        for key, record in sorted(fold(log_now(store.connection, store.topic, upto)).items())
    ]


def test_scenario_a_two_instances_over_http_share_the_last_word_on_every_user(store: Store) -> None:
    one, two = store.one, store.two

    # 3: five users through one instance, each read through the other.
    for profile in FIRST_FIVE:
        position = put(one, profile["userId"], profile)
        assert two.ask(f"/users/{profile['userId']}?min_position={position}").json == profile
    assert store.records() == 5

    # 4: updates through the second, read through the first.
    position = post(two, UPDATES)
    assert one.ask(f"/users?min_position={position}").json == newest([*FIRST_FIVE, *UPDATES])
    assert store.records() == 8

    # 5: five more, and a compaction under both instances.
    position = post(one, LAST_FIVE)
    assert store.records() == 13
    store.compact()
    assert store.versions() == {f"user-{n}": {1: 3, 2: 2}.get(n, 1) for n in range(1, 11)}
    for instance in (one, two):
        assert instance.ask(f"/users?min_position={position}").json == newest(EVERYONE)

    # 6: an update is there at once, wherever it was written.
    position = put(two, "user-1", LIVE_UPDATE)
    for instance in (one, two):
        assert instance.ask(f"/users/user-1?min_position={position}").json == LIVE_UPDATE

    # 7: a tombstone deletes; an empty string and JSON null are values.
    position = delete(one, "user-5")
    for instance in (one, two):
        gone = instance.ask(f"/tables/users/rows/user-5?min_position={position}")
        assert (gone.status, gone.json["error"]["code"]) == (404, "key_not_found")
        assert instance.ask("/users/user-5").status == 404
    for key, value in (("user-empty", ""), ("user-null", None)):
        position = put(one, key, value)
        row = two.ask(f"/tables/users/rows/{key}?min_position={position}")
        assert (row.status, row.json["value"]) == (200, value)
    store.compact()
    log = log_now(store.connection, store.topic)
    assert (len(log), [record.key for record in log if record.is_tombstone]) == (11, [])

    # 8: all users, one user, the count, and a user that is not there.
    users = newest([*EVERYONE, LIVE_UPDATE])
    shown = [*(user for user in users if user["userId"] != "user-5"), "", None]
    for instance in (one, two):
        assert instance.ask("/users").json == shown
        assert instance.ask("/users/user-10").json == LAST_FIVE[-1]
        assert instance.ask("/users/count").json == {"count": 11}
        missing = instance.ask("/users/user-11")
        assert (missing.status, list(missing.json)) == (404, ["error"])

    # 9: one is killed; what it missed is written, deleted and compacted away, and it comes back in sync.
    one.kill()
    newer = profile_of(2, "Bob Miller", 32, version=3)
    put(two, "user-2", newer)
    position = delete(two, "user-4")
    store.compact()
    assert b"user-4" not in {record.key for record in log_now(store.connection, store.topic)}
    one.start()
    for instance in (one, two):
        assert instance.ask("/ready").status == 200
        assert instance.ask(f"/users/user-2?min_position={position}").json == newer
        assert instance.ask("/users/user-4").status == 404
        assert instance.ask("/users/count").json == {"count": 10}
    one.stop()
    one.start()
    assert one.ask("/users/count").json == {"count": 10}
    position = put(one, "user-12", profile_of(12, "Lena", 44))
    for instance in (one, two):
        assert instance.ask(f"/users/user-12?min_position={position}").json["name"] == "Lena"

    assert_all_agree(store)


def assert_all_agree(store: Store) -> None:
    """Both instances, the verb `compare` and the law of the log at the same position."""
    rows, position = rows_and_position(store.one)
    assert store.two.ask(f"/tables/users/count?min_position={position}").json == {"count": 11}
    assert rows_and_position(store.two) == (rows, position)
    assert rows == the_law(store, position)
    told = store.lastword("compare", store.one.url, store.two.url)
    assert told == f"users: equal, 11 rows at {position}\n"
