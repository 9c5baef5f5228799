"""A key that may be outside its partition: a search in the other partitions, with a time limit."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lastword.core.key_partition import partition_of
from lastword.core.record import Record
from lastword.core.split_keys import tie_break
from lastword.kafka.client.bounded_read import Progress
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What the other partitions have of a key."""

    home: int
    # The live row of the key that was found outside its home; None if there was none.
    row: Record | None
    # False when time ran out before the ends of the partitions.
    is_certain: bool


def look_elsewhere(
    connection: Connection, topic: str, key: bytes, *, within_s: float, progress: Progress | None = None
) -> Elsewhere:
    """Looks for a key in the partitions where Java's partitioner does not put it, for about `within_s` seconds."""
    partitions = sorted(connection.topic(topic).partitions)
    home = partition_of(key, len(partitions))
    newest: dict[int, Record] = {}
    others = [partition for partition in partitions if partition != home]
    give_up_at: float | None = None
    is_certain = True
    for batch in read_log(connection, topic, partitions=others, progress=progress) if others else ():
        newest.update((record.partition, record) for record in batch if record.key == key)
        # From the first records on: the time to reach the cluster does not count.
        give_up_at = give_up_at or time.monotonic() + within_s
        if time.monotonic() > give_up_at:
            is_certain = False
            break
    live = [record for record in newest.values() if record.value is not None]
    row = max(live, key=tie_break, default=None)
    return Elsewhere(home=home, row=row, is_certain=is_certain or row is not None)
