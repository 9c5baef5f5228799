"""The topics of the board: the topics that it reads, and the compacted topic for its counts."""

from __future__ import annotations

from lastword.core.errors import BadInput, NotFound
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.topics.cleanup_policy import cleanup_policy
from lastword.kafka.topics.topic_changes import create_if_missing

ACTIONS, STATS, USERS = "actions", "team_stats", "new_users"
# The topic of the pipeline's status, and the name of the pipeline of the inside teams.
STATUS, PIPELINE = "teams-status", "teams"
STATE = "board_state"

_STATE_SETTINGS = {
    "cleanup.policy": "compact",
    # Few records, written often: compacted soon, so that a start has little to read.
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
    # A row may hold a thousand names of a hundred letters, each with its counts.
    "max.message.bytes": str(8 * 1024**2),
}


def refuse_missing(connection: Connection) -> None:
    """NotFound if a topic that the board reads is missing."""
    existing = connection.reach().topics
    missing = [topic for topic in (ACTIONS, STATS) if topic not in existing]
    if missing:
        raise NotFound(
            f"no topic {' and no topic '.join(map(repr, missing))} at {connection.bootstrap_servers}, and the board "
            "counts their records: make them with  lastword board --create, or start the teams with  lastword up"
        )


def make_state_topic(connection: Connection) -> None:
    """Creates `board_state` if it is missing; BadInput if it could lose rows."""
    admin = connection.admin()
    create_if_missing(connection, STATE, partitions=1, settings=_STATE_SETTINGS)
    if len(connection.topic(STATE, admin).partitions) != 1:
        raise BadInput(
            f"topic {STATE!r} has more than one partition, and its rows must belong to one moment: delete the topic"
        )
    if not cleanup_policy(settings_now(admin, STATE)).keeps_every_row:
        raise BadInput(
            f"topic {STATE!r} has the counts of the board and is not compacted, so rows may expire: "
            f"run  lastword topic alter {STATE} --set cleanup.policy=compact"
        )
