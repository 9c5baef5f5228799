"""The limits of requests: whatever a client can make large has a limit here."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lastword.core.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Limits:
    # The bytes of a key, after the codec has encoded the text of the address.
    key_bytes: int = 4096
    # Enough for a cursor after a key of 40 KB; an address has 64 KiB at most.
    query_bytes: int = 60_000
    # The body of one request, and the time that its sender may take.
    body_bytes: int = 8 * 1024 * 1024
    body_s: float = 30.0
    # How many requests that write may wait for their acknowledgement, for each table.
    waiting_writes: int = 1000
    # All bodies together, from the first byte until the writes are acknowledged.
    waiting_bytes: int = 128 * 1024 * 1024
    page_rows: int = 1000
    # A page ends after the row that exceeds this, so the largest answer is this and one row.
    page_bytes: int = 4 * 1024 * 1024
    # All answers of 256 KiB and more together, until their clients have read them.
    unsent_bytes: int = 256 * 1024 * 1024
    # How long a read waits for its min_position, and how many reads may wait at a time.
    wait_s: float = 10.0
    waiting_reads: int = 1000
    # Open change streams, and the newest changes of a table that are kept for slow readers.
    streams: int = 256
    stream_bytes: int = 8 * 1024 * 1024
    # The missed changes that a client gets at a time.
    missed_bytes: int = 1024 * 1024
    # A client that reads nothing of a stream or a large answer for this long is cut off.
    stall_s: float = 30.0
    heartbeat_s: float = 15.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise BadInput(f"{field.name}={getattr(self, field.name)}: must be more than 0")
