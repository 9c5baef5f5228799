"""The state of a replica, in words that its owner can act on.

connecting    no cluster answers, or the topic is not there; the replica keeps trying
catching-up   building, reading unread records, or sweeping
ready         every partition has reached the end that the topic had when the replica connected
rebuilding    its store was damaged and is rebuilt from Kafka; no rows are shown until the new store is right
failed        the replica can't continue; `why` says what to do, and whether it tries again by itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StateName = Literal["connecting", "catching-up", "ready", "rebuilding", "failed"]


@dataclass(frozen=True, kw_only=True)
class State:
    name: StateName
    # What happens now, or what went wrong and what to do.
    why: str | None = None
    # The same for clients over HTTP: no folder, no address.
    public_why: str | None = None
    # Of a failed replica: whether it still asks for the topic's end, so that the lag is known.
    watches_end: bool = False
    # While catching up: offsets passed, offsets in all, and an estimate.
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    # "uncertain" when a deleted key may still be shown: no pass over the log was quicker than delete.retention.ms.
    deletes: Literal["certain", "uncertain"] = "certain"

    def __str__(self) -> str:
        text: str = self.name
        if self.name in ("catching-up", "rebuilding") and self.total:
            text += f" {self.done:,}/{self.total:,}"
        if self.seconds_left is not None:
            text += f", about {self.seconds_left:.0f} s left"
        if self.deletes == "uncertain":
            text += ", deletes: uncertain"
        return text + (f" ({self.why})" if self.why else "")
