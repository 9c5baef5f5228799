"""The topics of the fraud scenario: new users in, actions and the teams' counters out."""

from __future__ import annotations

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_if_missing

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
_SETTINGS = {
    "new_users": AN_HOUR,
    "actions": AN_HOUR,
    "team_stats": {**_READABLE, "cleanup.policy": "compact", "segment.ms": "60000"},
}


def make_fraud_topics(connection: Connection) -> None:
    """Creates the topics that are missing; the others stay as they are."""
    for topic, settings in _SETTINGS.items():
        create_if_missing(connection, topic, partitions=PARTITIONS, settings=settings)
