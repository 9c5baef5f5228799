"""Topics for one benchmark: empty, or filled once with records that stay."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from benchmarks.input.rows import distinct, updates
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import load
from lastword.kafka.topics.topic_changes import create_topic, delete_topic

PARTITIONS = 3
FILLED_PARTITIONS = 4
RECORDS_PER_KEY = 10

# Otherwise the log cleaner could remove records between two rounds.
_UNCLEANED = {"min.compaction.lag.ms": str(24 * 60 * 60 * 1000)}


@contextmanager
def fresh_topic(
    connection: Connection,
    name: str,
    *,
    partitions: int = PARTITIONS,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """An empty topic, deleted at the end of the `with` block."""
    create_topic(connection, name, partitions=partitions, settings=dict(settings))
    try:
        yield name
    finally:
        delete_topic(connection, name)


@dataclass(frozen=True, kw_only=True)
class FilledTopic:
    """A topic that is full and stays as it is: how many records, and how many rows they fold to."""

    connection: Connection
    topic: str
    records: int
    rows: int

    @property
    def address(self) -> tuple[str, str]:
        """The bootstrap servers and the topic: the first words of most commands."""
        return self.connection.bootstrap_servers, self.topic


@contextmanager
def updated_topic(connection: Connection, records: int) -> Iterator[FilledTopic]:
    """Each key about ten times, with a few tombstones."""
    live = bytearray(max(1, records // RECORDS_PER_KEY))
    with _uncleaned_topic(connection) as topic:
        load(connection, topic, updates(records, live))
        yield FilledTopic(connection=connection, topic=topic, records=records, rows=sum(live))


@contextmanager
def distinct_topic(connection: Connection, records: int) -> Iterator[FilledTopic]:
    """Each key once."""
    with _uncleaned_topic(connection) as topic:
        load(connection, topic, distinct(records))
        yield FilledTopic(connection=connection, topic=topic, records=records, rows=records)


@contextmanager
def _uncleaned_topic(connection: Connection) -> Iterator[str]:
    name = f"bench-filled-{uuid.uuid4().hex[:8]}"
    with fresh_topic(connection, name, partitions=FILLED_PARTITIONS, settings=_UNCLEANED) as topic:
        yield topic
