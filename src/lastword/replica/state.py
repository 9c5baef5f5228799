"""How a replica stands, in words that its owner can act on.

connecting    no cluster answers, or the topic is away; it goes on trying
catching-up   building, reading what it has not seen, or sweeping
ready         every partition has reached where the topic ended when this replica came to it
rebuilding    its store was damaged and is built again from Kafka; nothing is shown until that is right
failed        it can't go on; `why` says what to do, and whether it tries again by itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StateName = Literal["connecting", "catching-up", "ready", "rebuilding", "failed"]


@dataclass(frozen=True, kw_only=True)
class State:
    name: StateName
    # What is going on, or what went wrong and what to do.
    why: str | None = None
    # The same in words for anyone: no folder, no address.
    public_why: str | None = None
    # Of one that has failed: whether the topic's end is still asked for, so that the lag is known.
    watches_end: bool = False
    # While catching up: offsets passed, offsets in all, and an estimate.
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    # "uncertain" when a deleted key may still be shown: no pass over the log was quicker than delete.retention.ms.
    deletes: Literal["certain", "uncertain"] = "certain"

    def __str__(self) -> str:
        told: str = self.name
        if self.name in ("catching-up", "rebuilding") and self.total:
            told += f" {self.done:,}/{self.total:,}"
        if self.seconds_left is not None:
            told += f", about {self.seconds_left:.0f} s left"
        if self.deletes == "uncertain":
            told += ", deletes: uncertain"
        return told + (f" ({self.why})" if self.why else "")
