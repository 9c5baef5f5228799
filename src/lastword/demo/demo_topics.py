"""The topics of the scenarios: created if they are missing, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lastword.api.table import Table
from lastword.core.errors import AlreadyExists
from lastword.demo import people
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_topic

PARTITIONS = 5
# Whatever the writer's compression: clients of every language read gzip without another library.
_READABLE = {"compression.type": "gzip"}
AN_HOUR = {
    **_READABLE,
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    # Kafka deletes only whole segments: a segment of a week would keep its first hour for a week.
    "segment.ms": "600000",
}
_FRAUD = {
    "new_users": AN_HOUR,
    "actions": AN_HOUR,
    "team_stats": {**_READABLE, "cleanup.policy": "compact", "segment.ms": "60000"},
}


def make_if_missing(connection: Connection, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
    if topic not in connection.reach().topics:
        with suppress(AlreadyExists):  # another process has created it meanwhile
            create_topic(connection, topic, partitions=partitions, settings=settings)


def make_fraud_topics(connection: Connection) -> None:
    """New users in, actions and the teams' counters out."""
    for topic, settings in _FRAUD.items():
        make_if_missing(connection, topic, partitions=PARTITIONS, settings=settings)


def fill_profiles(connection: Connection) -> int:
    """Creates and fills the table of profiles once, and returns its number of rows; later writes of a user stay."""
    make_if_missing(connection, people.TABLE, partitions=people.PARTITIONS, settings=people.TOPIC_SETTINGS)
    _, end = log_bounds(connection, people.TABLE)
    with Table(connection, people.TABLE) as users:
        # Offsets only grow: a lower sum means that an earlier start was killed while it loaded.
        if sum(end.values()) < len(people.EVERYONE):
            users.put_many((profile["userId"], profile) for profile in people.EVERYONE)
        return users.count()
