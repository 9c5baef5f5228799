"""The checkpoint: how far each source partition is processed, one record for each in a compacted topic, the changelog.

The changelog has as many partitions as the source, and the progress of source partition p is in its partition p:
so an open transaction of another partition never hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from lastword.core.errors import LastwordError, TakenOver
from lastword.core.position import Position
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_to_end
from lastword.kafka.client.transactions import OutgoingRecord

_FORMAT = 1

# By the topic of a table, then by rule, then by counter.
Counters = Mapping[str, Mapping[str, Mapping[str, int]]]


class PartitionProgress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All records of a source partition before `next_offset` are processed, with these results."""

    format: int = _FORMAT
    next_offset: int
    source_id: str  # a source that was deleted and created again has another
    generation: int
    owner: str  # the driver of that generation
    valid: int = 0
    rejected: int = 0
    # The tasks of the largest batch that had records of this partition. Older records lack it.
    most_tasks: int = 0
    counters: Counters = {}

    def to_json(self) -> bytes:
        return json_text(self).encode()

    @staticmethod
    def from_json(text: bytes) -> PartitionProgress:
        """ValueError for a text that is damaged, or of another format."""
        # The format first: only this field is the same in every format.
        written = from_json_text(text, _ProgressFormat)
        if written.format != _FORMAT:
            raise ValueError(f"it has format {written.format}, and this version knows {_FORMAT}")
        return from_json_text(text, PartitionProgress)


class _ProgressFormat(Struct, frozen=True):
    format: int


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
    except ValueError as damage:
        raise LastwordError(
            f"{changelog}[{partition}], offset {newest.offset}: this is no progress of a pipeline ({damage}): "
            "give the app another name, or delete that topic to start from the beginning"
        ) from None


def refuse_newer(app: str, progress: PartitionProgress, generation: int) -> None:
    """TakenOver if the progress is of a later generation than ours."""
    if progress.generation > generation:
        raise TakenOver(f"the pipeline {app} was taken over by {progress.owner}")
