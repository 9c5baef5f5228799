"""The topics of the board on a real cluster, and the records that teams write to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition

from lastword.core.clock import now_ms
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.kafka.topics.topic_snapshot import TopicProbe
from lastword.teams.board.board_rows import BoardRows
from lastword.teams.board.board_topics import ACTIONS, STATE, STATS, STATUS
from lastword.teams.board.live import LiveBoard
from lastword.teams.users.fraud_topics import make_fraud_topics
from support.board_reference import Recount, recount, recount_of_board, recount_of_tally
from support.cluster_routes import status_of
from support.compacted_logs import wait_for_markers
from support.topic_contents import records_of
from support.waiting import eventually

_FRAUD = ("new_users", "actions", "team_stats")


@contextmanager
def board_topics(connection: Connection) -> Iterator[Connection]:
    """Empty topics, deleted at the end of the `with` block."""
    drop_board_topics(connection)
    make_fraud_topics(connection)
    # In a test of a minute Kafka's cleaner could remove refused records before the recount.
    alter_topic(connection, STATS, settings={"segment.ms": "604800000"})
    yield connection
    drop_board_topics(connection)


def drop_board_topics(connection: Connection) -> None:
    known = connection.reach().topics
    for topic in (*_FRAUD, STATUS, STATE):
        if topic in known:
            delete_topic(connection, topic)


def action(team: str, number: int = 0) -> bytes:
    fields = {
        "customer": f"user-{number}@example.com",
        "type": "BAN_CUSTOMER",
        "reason": "SUSPICIOUS_NAME",
        "team": team,
    }
    return json.dumps(fields).encode()


def stats(team: str, processed: int, flagged: int) -> bytes:
    return json.dumps({"team": team, "processed": processed, "flagged": flagged}).encode()


def write(connection: Connection, topic: str, *records: tuple[str | None, bytes | None]) -> None:
    """Writes as an outside program, which may leave out the key."""
    producer = connection.producer()
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def act(connection: Connection, *teams: str) -> None:
    write(connection, "actions", *((None, action(team, number)) for number, team in enumerate(teams)))


def write_status(
    connection: Connection,
    teams: Iterable[str],
    *,
    at: int | None = None,
    tasks: int = 1,
    most_tasks: int | None = None,
    lag: int = 7,
) -> None:
    """Writes the status row of the pipeline of the inside teams."""
    if STATUS not in connection.reach().topics:
        create_topic(connection, STATUS, partitions=1)
    row = {
        **status_of("teams", now_ms() if at is None else at),
        "lag": lag,
        "tables": {"team_stats": {team: {"processed": 0, "flagged": 0} for team in teams}},
        "batch": {"tasks": tasks, "records": 100, "seconds": 0.2, "latency_ms": 300},
        **({} if most_tasks is None else {"most_tasks": most_tasks}),
    }
    write(connection, STATUS, ("teams", json.dumps(row).encode()))


def counted_from_scratch(connection: Connection, *, within_s: float = 60) -> Recount:
    """The counts of both topics as they are now, when no transaction is open."""
    for topic in (ACTIONS, STATS):
        wait_for_markers(connection, topic, within_s=within_s)
    return recount(records_of(connection, ACTIONS), records_of(connection, STATS))


def recount_of_state(connection: Connection) -> Recount:
    """The counts in `board_state`."""
    rows = BoardRows()
    if STATE in connection.reach().topics:
        for record in records_of(connection, STATE):
            rows.take(record)
    return recount_of_tally(rows.tally())


def recount_shown(live: LiveBoard) -> Recount:
    return recount_of_board(msgspec.to_builtins(live.board.answer()))


def show_the_recount(connection: Connection, *boards: LiveBoard, within_s: float = 60) -> None:
    """Waits until the boards show the counts of a recount; fails with the difference and all positions."""
    expected = counted_from_scratch(connection)
    try:
        eventually(lambda: all(recount_shown(live) == expected for live in boards), within_s=within_s)
    except AssertionError:
        pytest.fail(_difference(connection, expected, boards))


def _difference(connection: Connection, expected: Recount, boards: Sequence[LiveBoard]) -> str:
    """The differences of each board from the recount, and the positions of the logs and of the stored counts."""
    lines = []
    for number, live in enumerate(boards):
        board = live.board
        lines.append(f"board {number}: writes={live.is_writer} state={board.state} why={board.why} at={board.at}")
        for name, recounted, counted in zip(Recount._fields, expected, recount_shown(live), strict=True):
            if recounted != counted:
                lines.append(f"  {name}: recounted {recounted}, shown {counted}")
    again = counted_from_scratch(connection)
    lines.append(f"a recount now is {'the same' if again == expected else again}")
    rows = BoardRows()
    for record in records_of(connection, STATE):
        rows.take(record)
    lines += [
        f"kept {place}: next offset {count.next_offset}, missed {count.missed}" for place, count in rows.counts.items()
    ]
    for topic in (ACTIONS, STATS, STATE):
        now = TopicProbe(connection, topic).look()
        lines.append(f"{topic}: start {now.start}, stable end {now.stable}, end {now.high}")
    return "\n".join(lines)


def row_of(live: LiveBoard, team: str) -> dict[str, Any]:
    """The row of a team; empty while the team is not on the board."""
    return next((each for each in msgspec.to_builtins(live.board.answer())["teams"] if each["team"] == team), {})


def badges_of(live: LiveBoard, team: str) -> list[str]:
    return [each["name"] for each in row_of(live, team).get("badges", [])]


def expire(connection: Connection, topic: str, partition: int, before: int) -> None:
    """Deletes records as retention does, now."""
    admin = connection.admin()
    for future in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result()
