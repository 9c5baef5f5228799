"""The bytes of a row and of a partition's state in the store."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lastword.core.headers import after_headers, pack_headers, unpack_headers
from lastword.core.record import Headers, Record

# To be raised whenever the layout below, or its meaning, changes.
FORMAT = 2

# partition, offset, timestamp, flags; then the headers if there are any; then the value
ROW_HEAD = struct.Struct(">IqqB")
FLAGS_AT = ROW_HEAD.size - 1
# The codec can't read the value.
POISON = 1
# Packed headers come before the value.
HEADERS = 2
PARTITION = struct.Struct(">I")
_PARTITION_STATE = struct.Struct(">qiqqqq??qqq")


class PartitionState(NamedTuple):
    """How far the store has read one partition, and its counts."""

    position: int
    # The epoch of the last record read, and the offset after that record. The position may be further on: past markers
    # and aborted records, which a consumer never sees and whose epoch is not known.
    leader_epoch: int = -1
    epoch_end: int = 0
    live_rows: int = 0
    poison_rows: int = 0
    # The last moment, in ms, at which the partition is known to have been read to its end.
    caught_up_at: int = 0
    # Whether an offset was missing among the offsets read since that moment: a tombstone may have been there.
    holes: bool = False
    # Whether a deleted key may still have a row here, because no pass over the log was quick enough to be sure.
    deletes_uncertain: bool = False
    # The position at which ghosts were last removed: a watcher from there or before can't learn of those deletes.
    swept_at: int = -1
    # All rows from before this offset have left: the rows are the fold of the records in [log_start, position).
    log_start: int = 0
    # The log start at the last check. Some of the older rows may be removed already.
    topic_log_start: int = 0


def partition_state_at(position: int, *, log_start: int, caught_up_at: int) -> PartitionState:
    """The state of a partition without rows from before `log_start`."""
    return PartitionState(position=position, caught_up_at=caught_up_at, log_start=log_start, topic_log_start=log_start)


class CommittedState(NamedTuple):
    """Positions and counts after a commit; always replaced as a whole, so that no reader sees half of a commit."""

    partitions: Mapping[int, PartitionState]
    # Keys with live rows in more than one partition, and how many rows of these keys are not shown.
    split_keys: int = 0
    hidden_rows: int = 0
    # The size of all last good values together.
    last_good_bytes: int = 0


def pack_row(record: Record, *, poison: bool) -> bytes:
    """The row of a record that is not a tombstone."""
    flags, value = (POISON if poison else 0), record.value or b""
    if record.headers:
        return row_head(record.partition, record.offset, record.timestamp, record.headers, flags) + value
    return ROW_HEAD.pack(record.partition, record.offset, record.timestamp, flags) + value


def row_head(partition: int, offset: int, timestamp: int, headers: Headers, flags: int = 0) -> bytes:
    """The part of a row that comes before its value."""
    if headers:
        return ROW_HEAD.pack(partition, offset, timestamp, flags | HEADERS) + pack_headers(headers)
    return ROW_HEAD.pack(partition, offset, timestamp, flags)


def unpack_row(key: bytes, raw: bytes) -> Record:
    partition, offset, timestamp, flags = ROW_HEAD.unpack_from(raw)
    if flags & HEADERS:
        return Record(key, value_in(raw), partition, offset, timestamp, headers_in(raw))
    return Record(key, raw[ROW_HEAD.size :], partition, offset, timestamp)


def value_in(raw: bytes) -> bytes:
    return raw[after_headers(raw, ROW_HEAD.size) if raw[FLAGS_AT] & HEADERS else ROW_HEAD.size :]


def headers_in(raw: bytes) -> Headers:
    return unpack_headers(raw, ROW_HEAD.size) if raw[FLAGS_AT] & HEADERS else ()


def is_poison(raw: bytes) -> bool:
    return bool(raw[FLAGS_AT] & POISON)


def as_poison(raw: bytes) -> bytes:
    """The same row, marked: the codec can't read its value."""
    return b"%b%c%b" % (raw[:FLAGS_AT], raw[FLAGS_AT] | POISON, raw[ROW_HEAD.size :])


def partition_in(raw: bytes) -> int:
    return int(PARTITION.unpack_from(raw)[0])


def partition_and_offset_in(raw: bytes) -> tuple[int, int]:
    partition, offset, _, _ = ROW_HEAD.unpack_from(raw)
    return partition, offset


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


def pack_partition_state(state: PartitionState) -> bytes:
    return _PARTITION_STATE.pack(*state)


def unpack_partition_state(raw: bytes) -> PartitionState:
    return PartitionState(*_PARTITION_STATE.unpack(raw))
