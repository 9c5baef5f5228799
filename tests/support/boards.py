"""The topics of the board on a real cluster, and what teams write to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import TopicPartition

from lastword.board.live import LiveBoard
from lastword.board.rows import Kept
from lastword.board.topics import STATE, STATUS
from lastword.core.clock import now_ms
from lastword.demo.topics import make_fraud_topics
from lastword.kafka.connection import Connection
from lastword.kafka.topics import create_topic, delete_topic
from support.board_reference import Recount, counted_by, recount, shown_by
from support.topics import records_of

_FRAUD = ("new_users", "actions", "team_stats")


@contextmanager
def board_topics(connection: Connection) -> Iterator[Connection]:
    """Empty ones, that are gone afterwards."""
    drop_board_topics(connection)
    make_fraud_topics(connection)
    yield connection
    drop_board_topics(connection)


def drop_board_topics(connection: Connection) -> None:
    known = connection.reach().topics
    for topic in (*_FRAUD, STATUS, STATE):
        if topic in known:
            delete_topic(connection, topic)


def action(team: str, number: int = 0) -> bytes:
    told = {"customer": f"user-{number}@example.com", "type": "BAN_CUSTOMER", "reason": "SUSPICIOUS_NAME", "team": team}
    return json.dumps(told).encode()


def stats(team: str, processed: int, flagged: int) -> bytes:
    return json.dumps({"team": team, "processed": processed, "flagged": flagged}).encode()


def write(connection: Connection, topic: str, *records: tuple[str | None, bytes | None]) -> None:
    """As an outside program does it, which may leave out the key."""
    producer = connection.producer()
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def act(connection: Connection, *teams: str) -> None:
    write(connection, "actions", *((None, action(team, number)) for number, team in enumerate(teams)))


def tell_status(
    connection: Connection, teams: Iterable[str], *, at: int | None = None, tasks: int = 1, lag: int = 7
) -> None:
    """What the pipeline of the inside teams says of itself."""
    if STATUS not in connection.reach().topics:
        create_topic(connection, STATUS, partitions=1)
    row = {
        "app": "teams",
        "at": now_ms() if at is None else at,
        "lag": lag,
        "tables": {"team_stats": {team: {"processed": 0, "flagged": 0} for team in teams}},
        "batch": {"tasks": tasks},
    }
    write(connection, STATUS, ("teams", json.dumps(row).encode()))


def counted_from_scratch(connection: Connection) -> Recount:
    """By reading both topics as they are now."""
    return recount(records_of(connection, "actions"), records_of(connection, "team_stats"))


def kept(connection: Connection) -> Recount:
    """By `board_state` alone."""
    rows = Kept()
    if STATE in connection.reach().topics:
        for record in records_of(connection, STATE):
            rows.take(record)
    return counted_by(rows.tally())


def shown(live: LiveBoard) -> Recount:
    return shown_by(live.board.as_json())


def row_of(live: LiveBoard, team: str) -> dict[str, Any]:
    """A team of the board; empty while it is not on it."""
    return next((each for each in live.board.as_json()["teams"] if each["team"] == team), {})


def badges_of(live: LiveBoard, team: str) -> list[str]:
    return [each["name"] for each in row_of(live, team).get("badges", [])]


def expire(connection: Connection, topic: str, partition: int, before: int) -> None:
    """As retention does it, now."""
    admin = connection.admin()
    for future in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result()
