"""The settings of a replica, and those of its steps that can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lastword.core.errors import BadInput
from lastword.replica.building.rebuild import build
from lastword.replica.ghost_sweep import sweep
from lastword.replica.store.apply_batch import Applied

OnLostRecords = Literal["rebuild", "fail"]

# Less memory_mb would work but take minutes instead of a second: nearly every record would go through the disk.
_LEAST = {
    "memory_mb": 128,
    "last_good_mb": 0,
    "watch_capacity": 1,
    "transaction_patience_s": 0,
    "check_every_s": 0.1,
}


@dataclass(frozen=True, kw_only=True)
class ReplicaSteps:
    # Makes the store of a large table from its topic; called as `building.rebuild.build`.
    build: Callable[..., bool] = build
    # A table is large with this many offsets to read: fewer are read before the workers of a build have started.
    build_from_offsets: int = 100_000
    # Removes the ghosts of a partition; called as `ghost_sweep.sweep`.
    sweep: Callable[..., Iterator[Applied]] = sweep


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings:
    # For the fold of a rebuild, all its processes together; rows that do not fit are sorted on disk.
    memory_mb: int = 1024
    # What to do when the log now starts after the replica's position: records were deleted that it never saw.
    on_lost_records: OnLostRecords = "rebuild"
    # For the last readable values that are kept beside values that can't be read.
    last_good_mb: int = 64
    # How many changes a watcher may be behind before it is cut off.
    watch_capacity: int = 100_000
    # How long an open transaction may keep the replica from being ready.
    transaction_patience_s: float = 30.0
    # How often the topic is checked: whether its history has moved, and whether partitions were added.
    check_every_s: float = 5.0

    def __post_init__(self) -> None:
        if self.on_lost_records not in ("rebuild", "fail"):
            raise BadInput(f"on_lost_records={self.on_lost_records!r}: say 'rebuild' or 'fail'")
        for name, least in _LEAST.items():
            given = getattr(self, name)
            if not isinstance(given, int | float) or isinstance(given, bool) or not given >= least:
                raise BadInput(f"{name}={given!r}: give a number from {least:g} on")
