"""The records of a topic, and its state by the reference fold."""

from __future__ import annotations

from lastword.core.fold import fold
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log


def records_of(connection: Connection, topic: str) -> list[Record]:
    """All committed records, partition by partition in offset order."""
    records = [record for batch in read_log(connection, topic) for record in batch]
    return sorted(records, key=lambda record: (record.partition, record.offset))


def state_of(connection: Connection, topic: str) -> dict[bytes, bytes | None]:
    """The rows of the topic, by the reference fold."""
    return {key: record.value for key, record in fold(records_of(connection, topic)).items()}
