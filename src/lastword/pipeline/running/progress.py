"""The checkpoint: how far each source partition is processed, one record for each in a compacted topic, the changelog.

The changelog has as many partitions as the source, and the progress of source partition p lies in its partition p:
so an open transaction of another partition never hides it.
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
    source_id: str  # a source that was deleted and created again has another
    generation: int
    owner: str  # the driver of that generation
    valid: int = 0
    rejected: int = 0
    # The tasks of the largest batch that had records of this partition. Older records lack it.
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
        if (form := fields.pop("format")) != _FORMAT:
            raise ValueError(f"it has format {form}, and this version knows {_FORMAT}")
        return PartitionProgress(**fields)


@dataclass(frozen=True, kw_only=True)
class StoredProgress:
    """A progress, and its offset in the changelog."""

    progress: PartitionProgress
    offset: int


def position_of(progress: Mapping[int, PartitionProgress]) -> Position:
    """Where reading of the source continues."""
    return Position({partition: each.next_offset for partition, each in progress.items()})


def progress_record(changelog: str, partition: int, progress: PartitionProgress) -> OutgoingRecord:
    """The record for the changelog."""
    return OutgoingRecord(changelog, progress.to_json(), str(partition).encode(), partition=partition)


def transactional_id(app: str, partition: int) -> str:
    """The id under which one process at a time writes the results and the progress of a source partition."""
    return f"{app}-{partition}"


def newest_progress(
    connection: Connection, changelog: str, partition: int, *, start: int | None = None
) -> StoredProgress | None:
    """The last progress of a source partition, in the changelog from `start` on; None if there is none.

    No transaction may be open there: the caller must be the only writer.
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
            "give the app another name, or delete that topic to start from the beginning"
        ) from None


def refuse_newer(app: str, progress: PartitionProgress, generation: int) -> None:
    """TakenOver if the progress is of a later generation than ours."""
    if progress.generation > generation:
        raise TakenOver(f"the pipeline {app} was taken over by {progress.owner}")
