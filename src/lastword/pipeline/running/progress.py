"""How far each source partition is processed: a compacted topic with one record for each, which is the checkpoint.

The changelog has as many partitions as the source, and the progress of source partition p lies in its partition p:
so an open transaction of a neighbour never hides it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from lastword.core.errors import LastwordError, TakenOver
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_to_end
from lastword.kafka.client.transactions import OutgoingRecord

_FORMAT = 1

# By the topic of a table, then by rule, then by counter.
Counters = Mapping[str, Mapping[str, Mapping[str, int]]]


@dataclass(frozen=True, kw_only=True)
class PartitionProgress:
    """All records of a source partition before `next_offset` are processed, with these results."""

    next_offset: int
    source_id: str  # a source that was made anew has another
    generation: int
    owner: str  # the driver of that generation
    valid: int = 0
    rejected: int = 0
    # Of the batches that had records of this partition: how many tasks the largest was shared by. Older rows lack it.
    most_tasks: int = 0
    counters: Counters = field(default_factory=dict)

    def to_json(self) -> bytes:
        return json.dumps(
            {
                "format": _FORMAT,
                "next_offset": self.next_offset,
                "source_id": self.source_id,
                "generation": self.generation,
                "owner": self.owner,
                "valid": self.valid,
                "rejected": self.rejected,
                "most_tasks": self.most_tasks,
                "counters": self.counters,
            }
        ).encode()

    @staticmethod
    def from_json(text: bytes) -> PartitionProgress:
        fields = json.loads(text)
        if (found := fields.pop("format")) != _FORMAT:
            raise ValueError(f"it has format {found}, and this version knows {_FORMAT}")
        return PartitionProgress(**fields)


@dataclass(frozen=True, kw_only=True)
class StoredProgress:
    """A progress, and where in the changelog it lies."""

    progress: PartitionProgress
    offset: int


def position_of(progress: Mapping[int, PartitionProgress]) -> Position:
    """Where the source is read on."""
    return Position({partition: each.next_offset for partition, each in progress.items()})


def progress_record(changelog: str, partition: int, progress: PartitionProgress) -> OutgoingRecord:
    """As it is written to the changelog."""
    return OutgoingRecord(changelog, progress.to_json(), str(partition).encode(), partition=partition)


def transactional_id(app: str, partition: int) -> str:
    """Under which the results and the progress of a source partition are written, by one process at a time."""
    return f"{app}-{partition}"


def newest_progress(
    connection: Connection, changelog: str, partition: int, *, start: int | None = None
) -> StoredProgress | None:
    """The last progress of a source partition, in the changelog from `start` on; None if there is none.

    Nothing may be open there: its only writer is who asks.
    """
    newest = None
    for record in read_to_end(connection, changelog, partition, start=start):
        newest = record
    if newest is None or newest.value is None:
        return None
    try:
        return StoredProgress(progress=PartitionProgress.from_json(newest.value), offset=newest.offset)
    except (ValueError, TypeError, KeyError) as damage:
        raise LastwordError(
            f"{changelog}[{partition}], offset {newest.offset}: this is no progress of a pipeline ({damage}): "
            "give the app another name, or delete that topic to begin anew"
        ) from None


def refuse_newer(app: str, found: PartitionProgress, generation: int) -> None:
    """TakenOver when a progress is of a later generation than ours."""
    if found.generation > generation:
        raise TakenOver(f"the pipeline {app} was taken over by {found.owner}")
