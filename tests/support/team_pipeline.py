"""The pipeline of the fifteen teams: its topics without expiry, arriving users, and the results it must have."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue

import msgspec

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.plan.plan_file import read_plan
from lastword.teams.users.fraud_topics import PARTITIONS
from lastword.teams.users.generated_users import users
from support.fifteen_rules import RULES, expected_matches
from support.pipelines import Outcome, records

TEAMS_FILE = Path(__file__).parents[2] / "pipelines" / "teams.toml"
_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1"}
# Longer than any outage of a test.
_DELIVERY_MS = 600_000


def teams_plan() -> Pipeline:
    return read_plan(str(TEAMS_FILE)).pipeline


def make_team_topics(connection: Connection) -> None:
    for topic in ("new_users", "actions"):
        create_topic(connection, topic, partitions=PARTITIONS, settings=_FOR_EVER)
    create_topic(connection, "team_stats", partitions=PARTITIONS)


@contextmanager
def arriving_users(connection: Connection, *, per_second: int = 200) -> Iterator[Callable[[int], None]]:
    """Users are written until the block ends, whatever happens to the cluster; one in fifty is no user.

    Gives a function that lets a number of users come at once.
    """
    ended, at_once = threading.Event(), Queue[int]()

    def write() -> None:
        producer = connection.producer(message_timeout_ms=_DELIVERY_MS)
        hurried = 0
        for number, user in enumerate(users(0)):
            value = b"{" if number % 50 == 49 else msgspec.json.encode(user)
            producer.produce("new_users", value, user.email.encode())
            producer.poll(0)
            with suppress(Empty):
                hurried += at_once.get_nowait()
            hurried = max(0, hurried - 1)
            if ended.wait(0 if hurried > 0 else 1 / per_second):
                break
        assert producer.flush(_DELIVERY_MS / 1000) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield at_once.put
    finally:
        ended.set()
        thread.join()


def recounted_teams(connection: Connection) -> Outcome:
    """The results that the source requires, counted by plain Python."""
    matches: Counter[tuple[str, str]] = Counter()
    rejects: Counter[str] = Counter()
    processed = 0
    for record in records(connection, "new_users"):
        place = f"new_users/{record.partition}/{record.offset}"
        if record.value == b"{":
            rejects[place] += 1
            continue
        processed += 1
        matches.update((place, team) for team in expected_matches(json.loads(record.value or b"")))
    flagged = Counter(team for _, team in matches)
    stats = {team: {"team": team, "processed": processed, "flagged": flagged[team]} for team in RULES}
    return Outcome(matches, rejects, {"team_stats": stats})
