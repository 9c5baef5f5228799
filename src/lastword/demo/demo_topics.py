"""The table of profiles: created and filled if it is missing, never emptied."""

from __future__ import annotations

from lastword.api.table import Table
from lastword.demo import people
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import create_if_missing


def fill_profiles(connection: Connection) -> int:
    """Creates and fills the table of profiles once, and returns its number of rows; later writes of a user stay."""
    create_if_missing(connection, people.TABLE, partitions=people.PARTITIONS, settings=people.TOPIC_SETTINGS)
    _, end = log_bounds(connection, people.TABLE)
    with Table(connection, people.TABLE) as users:
        # Offsets only grow: a lower sum means that an earlier start was killed while it loaded.
        if sum(end.values()) < len(people.EVERYONE):
            users.put_many((profile["userId"], profile) for profile in people.EVERYONE)
        return users.count()
