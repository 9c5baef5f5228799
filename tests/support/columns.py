"""Records as columns, the input of a fold."""

from __future__ import annotations

from lastword.core.record import Record
from lastword.kafka.client.reading import Columns


def columns_of(partition: int, records: list[Record]) -> Columns:
    """As from a read: no list of headers if no record has any."""
    return Columns(
        partition,
        [record.key for record in records],
        [record.value for record in records],
        [record.offset for record in records],
        [record.timestamp for record in records],
        0,
        [record.headers for record in records] if any(record.headers for record in records) else None,
    )
