"""A record as Kafka keeps it: plain bytes, with its partition and offset."""

from __future__ import annotations

import msgspec

# The key of the records that compaction on demand writes and removes again; nothing else writes this key.
NUDGE_KEY = b"__lastword_nudge"

Headers = tuple[tuple[str, bytes | None], ...]


class Record(msgspec.Struct, frozen=True, gc=False):
    # A Struct, because reads make millions of records: a NamedTuple takes five times as long to make. gc=False, because
    # bytes and numbers can't form a cycle.
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
