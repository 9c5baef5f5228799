"""What a client may ask for at most. Everything that a client can size has its limit here."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lastword.core.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Limits:
    # In bytes, as the codec makes them of what stands in the address.
    key_bytes: int = 4096
    # Enough for a cursor after a key of 40 KB; an address has 64 KiB at most.
    query_bytes: int = 60_000
    # Of a request, and how long its sender may take over it.
    body_bytes: int = 8 * 1024 * 1024
    body_s: float = 30.0
    # How many requests that write may wait for their acknowledgement, for each table.
    waiting_writes: int = 1000
    # Of all bodies together, from their first byte until their writes are acknowledged.
    waiting_bytes: int = 128 * 1024 * 1024
    page_rows: int = 1000
    # A page ends after the row that reaches it, so the largest answer is this and one row.
    page_bytes: int = 4 * 1024 * 1024
    # Of all answers of 256 KiB and more together, from when they are made until their clients have taken them.
    unsent_bytes: int = 256 * 1024 * 1024
    # How long a read waits for its min_position, and how many reads may wait at a time.
    wait_s: float = 10.0
    waiting_reads: int = 1000
    # Open change streams, and what is kept of a table's newest changes for those who are slow.
    streams: int = 256
    stream_bytes: int = 8 * 1024 * 1024
    # A reader of changes, or of a large answer, who takes nothing for so long is cut off.
    stall_s: float = 30.0
    heartbeat_s: float = 15.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise BadInput(f"{field.name}={getattr(self, field.name)}: must be more than 0")
