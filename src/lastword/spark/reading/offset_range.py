"""Which part of a log a read takes: from its start up to a position that is captured once, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import ceil

from lastword.core.errors import BadInput, HorizonPassed
from lastword.core.position import Position
from lastword.kafka.client.bounded_read import refuse_unknown_partitions
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.offsets_for_time import position_at

# A position (or its text), a moment, or None for the last stable offsets of now.
At = Position | datetime | str | None


@dataclass(frozen=True, kw_only=True)
class OffsetRange:
    """The records of a topic from `start` up to `stop`; both name every partition."""

    topic: str
    start: Position
    stop: Position
    # The partitions that went on after `stop`: their past may have been compacted meanwhile.
    past: frozenset[int] = frozenset()

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that may hold a record."""
        return tuple(p for p in self.stop if self.start[p] < self.stop[p])

    @property
    def offsets(self) -> int:
        """The number of offsets, which is at least the number of records."""
        return sum(self.stop[p] - self.start[p] for p in self.stop)


def captured_range(connection: Connection, topic: str, at: At = None) -> OffsetRange:
    """The range up to `at`; BadInput for a position that the log has not reached."""
    first, last = log_bounds(connection, topic)
    if at is None:
        return OffsetRange(topic=topic, start=first, stop=last)
    requested = _position(connection, topic, at, last)
    refuse_unknown_partitions(topic, requested, last)
    for partition, offset in requested.items():
        if offset > last[partition]:
            raise BadInput(
                f"{topic}[{partition}] ends at {last[partition]}, so the position {partition}:{offset} is not there "
                f"yet: ask for {partition}:{last[partition]} or earlier"
            )
        if 0 < offset < first[partition]:
            raise HorizonPassed(
                f"{topic}[{partition}] starts at {first[partition]}, so what was before {partition}:{offset} is gone: "
                f"ask for {partition}:{first[partition]} or later"
            )
    # A partition that a position does not name has not been read.
    stop = Position({partition: max(requested.get(partition, 0), first[partition]) for partition in last})
    past = frozenset(p for p in last if first[p] < stop[p] < last[p])
    return OffsetRange(topic=topic, start=first, stop=stop, past=past)


def _position(connection: Connection, topic: str, at: Position | datetime | str, last: Position) -> Position:
    if isinstance(at, Position):
        return at
    if isinstance(at, str):
        return last if at == "latest" else Position.parse(at)
    if at.tzinfo is None:
        raise BadInput(f"the moment {at.isoformat()} has no time zone: add one, such as +00:00")
    # Rounded up, because a record of the millisecond that has begun is before the moment.
    moment_ms = ceil(at.timestamp() * 1000)
    if moment_ms < 0:
        raise BadInput(f"the moment {at.isoformat()} is before 1970, and so before every record: give a later one")
    return position_at(connection, topic, moment_ms, last)
