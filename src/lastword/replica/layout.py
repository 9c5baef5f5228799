"""How a row and a partition's place are laid out in the store's bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lastword.core.record import Record

# Raised whenever the layout below, or what the store keeps in it, changes.
FORMAT = 1

# partition, offset, timestamp, 1 if the codec can't read the value; the value follows
ROW_HEAD = struct.Struct(">IqqB")
POISON_AT = ROW_HEAD.size - 1
PARTITION = struct.Struct(">I")
_PLACE = struct.Struct(">qiqqqq??q")


class Place(NamedTuple):
    """Where the store stands in one partition."""

    position: int
    # Of the last record read, and the offset after it. The position may be further on, past markers and aborted
    # records that nobody shows us: what epoch they have is not known.
    leader_epoch: int = -1
    epoch_end: int = 0
    live_rows: int = 0
    poison_rows: int = 0
    # The last moment, in ms, at which the partition was known to be read to its end.
    caught_up_at: int = 0
    # Whether an offset was missing among those read since that moment: a tombstone may have been there.
    holes: bool = False
    # Whether a deleted key may still have a row here, because no pass over the log was quick enough to be sure.
    deletes_uncertain: bool = False
    # The position at which ghosts were last removed: a watcher from there or before can't learn of those deletes.
    swept_at: int = -1


class Standing(NamedTuple):
    """Where the table stands; always replaced as a whole, so that nobody reads half of a commit."""

    places: Mapping[int, Place]
    # Keys with live rows in more than one partition, and how many rows of theirs are not shown.
    split_keys: int = 0
    hidden_rows: int = 0


def pack_row(record: Record, *, poison: bool) -> bytes:
    """The row of a record that is not a tombstone."""
    return ROW_HEAD.pack(record.partition, record.offset, record.timestamp, poison) + (record.value or b"")


def unpack_row(key: bytes, raw: bytes) -> Record:
    partition, offset, timestamp, _ = ROW_HEAD.unpack_from(raw)
    return Record(key, raw[ROW_HEAD.size :], partition, offset, timestamp)


def partition_in(raw: bytes) -> int:
    return int(PARTITION.unpack_from(raw)[0])


def pack_rows(rows: Iterable[bytes]) -> bytes:
    """Several packed rows as one value."""
    return b"".join(PARTITION.pack(len(row)) + row for row in rows)


def unpack_rows(raw: bytes) -> list[bytes]:
    rows, at = [], 0
    while at < len(raw):
        (size,) = PARTITION.unpack_from(raw, at)
        at += PARTITION.size
        rows.append(raw[at : at + size])
        at += size
    return rows


def pack_place(place: Place) -> bytes:
    return _PLACE.pack(*place)


def unpack_place(raw: bytes) -> Place:
    return Place(*_PLACE.unpack(raw))
