"""A record as Kafka keeps it: plain bytes, with the place where it stands in the log."""

from __future__ import annotations

import msgspec

# The key of the records that compaction on demand writes and takes away again; nobody else writes under it.
NUDGE_KEY = b"__lastword_nudge"

Headers = tuple[tuple[str, bytes | None], ...]


class Record(msgspec.Struct, frozen=True, gc=False):
    # A Struct, because reads make millions of these: a NamedTuple takes five times as long to make. No collector looks
    # at it, because bytes and numbers can't form a cycle.
    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers = ()

    @property
    def is_tombstone(self) -> bool:
        """True only for a null value: JSON null, the empty string and "null" are values."""
        return self.value is None
