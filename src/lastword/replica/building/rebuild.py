"""A store from nothing, fast: worker processes fold the partitions into sorted runs, and then merge the runs.

Only for a table where each key lives in one partition, as in nearly every table. A key in two partitions needs
`store.apply_batch`: then the whole store is built by reading on from the log's start, which is slower.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lastword.core.clock import now_ms
from lastword.core.codecs import codec_named, readable_by
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.replica.building.fold import BARE_BYTES, room_within
from lastword.replica.building.key_ranges import files_of_ranges
from lastword.replica.building.sorted_runs import read_index, remove_runs
from lastword.replica.building.tasks import Folded, FoldTask, MergedRows, MergeTask, Passed, PassedRows, RowFile
from lastword.replica.building.worker_pool import SplitKeyFound, WorkerPool
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PartitionState, partition_state_at
from lastword.replica.store.store import Store

# More workers than two need this much memory for each; and more workers than partitions, which only merge, this much.
_FOLD_MB = 64
_MERGE_MB = 256


def build(
    connection: Connection,
    identity: Identity,
    folder: Path,
    *,
    start: Position,
    stop: Position,
    memory_mb: int,
    progress: Callable[[int, int], None],
    stopping: threading.Event,
) -> bool:
    """A whole store in `folder`, at `stop`, flushed and closed again; `ReplicaFolder.adopt` syncs its files.

    Raises Stopped when `stopping` is set. False when a key lives in two partitions, so that the
    store can't be built this way; the folder must then be deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    to_read = {p: stop[p] - start[p] for p in stop if start[p] < stop[p]}
    folding, workers = workers_for(len(to_read), memory_mb, usable_cpus())
    shares, memory_bytes = spread(to_read, folding), memory_mb * 1024 * 1024
    folds = [
        FoldTask(
            bootstrap_servers=connection.bootstrap_servers,
            properties=dict(connection.properties),
            patience_s=connection.patience_s,
            topic=identity.topic,
            start={p: start[p] for p in share},
            stop={p: stop[p] for p in share},
            memory_bytes=max(0, memory_bytes - (workers - folding) * BARE_BYTES) // folding,
            runs_file=str(folder / f"fold-{number}.runs"),
        )
        for number, share in enumerate(shares)
    ]
    work = BuildProgress(sum(to_read.values()), progress)
    with WorkerPool(workers, identity.topic, stopping) as pool:
        folded = [result for result in pool.results(folds, work.note_read) if isinstance(result, Folded)]
        merges = _merges(folder, [fold.runs_file for fold in folds], identity, memory_bytes, workers)
        try:
            merged = [result for result in pool.results(merges, work.note_merged) if isinstance(result, MergedRows)]
        except SplitKeyFound:
            return False
    for fold in folds:
        remove_runs(Path(fold.runs_file))
    work.done()
    states = _states(start, stop, folded, merged)
    _take_over(folder, identity, [Path(each.file) for merge in merges for each in merge.row_files], states)
    return True


def workers_for(partitions: int, memory_mb: int, cpus: int) -> tuple[int, int]:
    """How many workers read partitions, and how many merge afterwards: the same ones, and perhaps more."""
    folding = min(partitions, cpus, max(2, memory_mb // _FOLD_MB))
    return folding, max(folding, min(cpus, memory_mb // _MERGE_MB)) if folding else 0


def spread(to_read: Mapping[int, int], workers: int) -> list[list[int]]:
    """The partitions in at most `workers` shares, with about equally many offsets to read."""
    shares: list[list[int]] = [[] for _ in range(min(workers, len(to_read)))]
    sizes = [0] * len(shares)
    for partition in sorted(to_read, key=lambda p: (-to_read[p], p)):
        least = sizes.index(min(sizes))
        shares[least].append(partition)
        sizes[least] += to_read[partition]
    return shares


def usable_cpus() -> int:
    # On Linux only the CPUs that this process may use.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _merges(
    folder: Path, runs_files: list[str], identity: Identity, memory_bytes: int, workers: int
) -> list[MergeTask]:
    """The files of rows, dealt out to the workers like cards: a slow part of the keys is shared."""
    blocks = [block for file in runs_files for run in read_index(Path(file)) for block in run]
    if not blocks:
        return []
    most_bytes = room_within(memory_bytes // workers)
    row_files = [
        RowFile(file=str(folder / f"fold-{number}.rows"), ranges=ranges)
        for number, ranges in enumerate(files_of_ranges(blocks, most_bytes=most_bytes, workers=workers))
    ]
    return [
        MergeTask(runs_files=runs_files, row_files=share, value_codec=identity.value_codec)
        for share in dealt(row_files, workers)
    ]


def dealt(row_files: list[RowFile], workers: int) -> list[list[RowFile]]:
    """Each file to one worker; without the workers that get none."""
    return [row_files[number::workers] for number in range(min(workers, len(row_files)))]


def _states(
    start: Position, stop: Position, folded: Sequence[Folded], merged: Sequence[MergedRows]
) -> dict[int, PartitionState]:
    states = {p: partition_state_at(end, log_start=start[p], caught_up_at=now_ms()) for p, end in stop.items()}
    dropped, poison = Counter[int](), Counter[int]()
    for merge in merged:
        dropped.update(merge.dropped)
        poison.update(merge.poison)
    for fold in folded:
        for partition, found in fold.partitions.items():
            states[partition] = states[partition]._replace(
                leader_epoch=found.leader_epoch,
                epoch_end=found.epoch_end,
                live_rows=found.entries - dropped[partition],
                poison_rows=poison[partition],
                caught_up_at=fold.began_ms,
                # Workers do not check for missing offsets, so one may have been missing.
                holes=True,
            )
    return states


def _take_over(folder: Path, identity: Identity, files: list[Path], states: Mapping[int, PartitionState]) -> None:
    store = Store(folder, readable=readable_by(codec_named(identity.value_codec)))
    try:
        store.declare(identity)
        store.ingest([file for file in files if file.exists()], states)
        store.flush()
    finally:
        store.close()


class BuildProgress:
    """One figure for both steps, in offsets: a row to be merged counts like an offset to be read."""

    def __init__(self, offsets: int, progress: Callable[[int, int], None]) -> None:
        self._offsets = offsets
        self._progress = progress
        self._read: dict[int, Passed] = {}
        self._merged: dict[int, int] = {}

    def note_read(self, worker: int, passed: Passed | PassedRows) -> None:
        if isinstance(passed, Passed):
            self._read[worker] = passed
            self._report()

    def note_merged(self, worker: int, passed: Passed | PassedRows) -> None:
        if isinstance(passed, PassedRows):
            self._merged[worker] = passed.rows
            self._report()

    def done(self) -> None:
        self._progress(self._offsets, self._offsets)

    def _report(self) -> None:
        read = sum(each.offsets for each in self._read.values())
        rows = sum(each.rows for each in self._read.values())
        if read:
            # As many rows for each offset as so far.
            work = self._offsets + rows * self._offsets / read
            self._progress(
                min(self._offsets, int(self._offsets * (read + sum(self._merged.values())) / work)), self._offsets
            )
