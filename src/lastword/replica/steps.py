"""The long steps of a replica beside following. A program that opens a replica may replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lastword.replica.building.rebuild import build
from lastword.replica.ghost_sweep import sweep
from lastword.replica.store.apply_batch import Applied


@dataclass(frozen=True, kw_only=True)
class ReplicaSteps:
    # Makes the store of a large table from its topic; called as `building.rebuild.build`.
    build: Callable[..., bool] = build
    # Removes the ghosts of a partition; called as `ghost_sweep.sweep`.
    sweep: Callable[..., Iterator[Applied]] = sweep
