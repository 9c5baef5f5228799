"""What the owner of a build and its workers send each other: tasks one way, progress and results the other way."""

from __future__ import annotations

import msgspec

from lastword.core.errors import (
    BadInput,
    ClusterUnreachable,
    DiskFull,
    LastwordError,
    NotFound,
    PositionGone,
    StoreDamaged,
)
from lastword.replica.building.key_ranges import KeyRange


class FoldTask(msgspec.Struct, tag=True, kw_only=True, frozen=True):
    """Read some partitions, and keep the newest row of each key in sorted runs."""

    bootstrap_servers: str
    properties: dict[str, str | int | float | bool]
    patience_s: float
    topic: str
    start: dict[int, int]
    stop: dict[int, int]
    memory_bytes: int
    runs_file: str


class RowFile(msgspec.Struct, kw_only=True, frozen=True):
    """The file for the rows of some ranges of keys, which follow each other."""

    file: str
    ranges: list[KeyRange]


class MergeTask(msgspec.Struct, tag=True, kw_only=True, frozen=True):
    """Merge the runs of all workers within some ranges of keys, into files that RocksDB takes over."""

    runs_files: list[str]
    row_files: list[RowFile]
    value_codec: str


Task = FoldTask | MergeTask


class Passed(msgspec.Struct, tag=True, frozen=True):
    """The progress of a fold: offsets that were read, and rows that the merge will have to read."""

    offsets: int
    rows: int


class PassedRows(msgspec.Struct, tag=True, frozen=True):
    """The progress of a merge: rows of runs that were read."""

    rows: int


class FoldedPartition(msgspec.Struct, frozen=True):
    # Rows and tombstones in runs: one for each key and run.
    entries: int
    # Of the last record, and the offset after that record.
    leader_epoch: int
    epoch_end: int


class Folded(msgspec.Struct, tag=True, frozen=True):
    """The runs are in their file; `began_ms` is just before the first fetch."""

    began_ms: int
    partitions: dict[int, FoldedPartition]


class MergedRows(msgspec.Struct, tag=True, frozen=True):
    """The rows are in their files, safe on the disk. Counts by partition."""

    # Entries of runs that are no live row: an older row of the same key, or a tombstone.
    dropped: dict[int, int]
    poison: dict[int, int]


class Split(msgspec.Struct, tag=True, frozen=True):
    """A key has live rows in two partitions, so the store can't be built this way."""


class Failed(msgspec.Struct, tag=True, frozen=True):
    kind: str
    text: str


WorkerMessage = Passed | PassedRows | Folded | MergedRows | Split | Failed

# The errors that a worker may report, by name: any other error is reported as LastwordError.
ERRORS = {
    kind.__name__: kind
    for kind in (LastwordError, BadInput, NotFound, PositionGone, ClusterUnreachable, DiskFull, StoreDamaged)
}
