"""What a replica can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lastword.core.errors import BadInput

OnLostRecords = Literal["rebuild", "fail"]


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings:
    # For the fold of a rebuild, all its processes together; what does not fit is sorted on disk.
    memory_mb: int = 1024
    # What to do when the log now starts after the replica's position: records were deleted that it never saw.
    on_lost_records: OnLostRecords = "rebuild"
    # For the last readable values that are kept beside values that can't be read.
    last_good_mb: int = 64
    # How many changes a watcher may be behind before it is cut off.
    watch_capacity: int = 100_000
    # How long an open transaction may keep the replica from being ready.
    transaction_patience_s: float = 30.0
    # How often it is checked whether the past has moved.
    check_every_s: float = 30.0

    def __post_init__(self) -> None:
        if self.on_lost_records not in ("rebuild", "fail"):
            raise BadInput(f"on_lost_records={self.on_lost_records!r}: say 'rebuild' or 'fail'")
        for name in ("memory_mb", "last_good_mb", "watch_capacity", "transaction_patience_s", "check_every_s"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name}={getattr(self, name)}: from 0 on")
