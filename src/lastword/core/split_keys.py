"""Keys that are in two partitions: which row counts, and for which keys a reader gets a warning.

The cause: partitions were added, or writers use different partitioners. Each partition then has its own newest
record of the key: a tombstone in one partition never removes the row in another.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple, Protocol

from lastword.core.record import Record

# Among the live rows of a key, one for each partition, the row with the greatest (timestamp, partition) is shown. All
# readers take the tie-break from here, so all show the same row. Spark's fold takes these as the names of its columns.
TIE_BREAK = ("timestamp", "partition")


class InPartition(Protocol):
    """A record, or a row, that knows its partition and timestamp."""

    @property
    def timestamp(self) -> int: ...
    @property
    def partition(self) -> int: ...


def tie_break(row: InPartition) -> tuple[int, int]:
    """The values of TIE_BREAK: of two live rows of a key the one with the greater tie-break is shown."""
    return row.timestamp, row.partition


class Merged(NamedTuple):
    rows: dict[bytes, Record]
    # Keys with live rows in more than one partition.
    split: frozenset[bytes]
    # Keys with a live row, and a tombstone with a later timestamp in another partition.
    deleted_elsewhere: frozenset[bytes]


def merged(newest: dict[int, dict[bytes, Record]]) -> Merged:
    """The live rows of all partitions; for a key in several partitions the latest. `newest` has tombstones too."""
    rows: dict[bytes, Record] = {}
    for by_key in newest.values():
        rows.update(by_key)
    split: set[bytes] = set()
    deleted: set[bytes] = set()
    if len(rows) < sum(map(len, newest.values())):
        for key, records in _in_several(newest).items():
            live = [record for record in records if record.value is not None]
            if live:
                rows[key] = latest = max(live, key=tie_break)
                if len(live) > 1:
                    split.add(key)
                if any(record.timestamp > latest.timestamp for record in records if record.value is None):
                    deleted.add(key)
            else:
                rows[key] = records[0]
    for key in [key for key, record in rows.items() if record.value is None]:
        del rows[key]
    return Merged(rows, frozenset(split), frozenset(deleted))


def _in_several(newest: dict[int, dict[bytes, Record]]) -> dict[bytes, list[Record]]:
    seen: set[bytes] = set()
    several: set[bytes] = set()
    for by_key in newest.values():
        several |= seen & by_key.keys()
        seen |= by_key.keys()
    records: defaultdict[bytes, list[Record]] = defaultdict(list)
    for by_key in newest.values():
        for key in several & by_key.keys():
            records[key].append(by_key[key])
    return records
