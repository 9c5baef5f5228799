"""Whether two answers about one key can both be right, when the two who gave them may have read differently far.

An answer comes with two positions of its giver: everything before `position` is in it, and nothing after `upto`, which
was asked for afterwards. Both sides fold one log, so a difference is fine as long as some log and two places between
those positions give both answers. What follows from the law, for a key whose live row in a partition is its highest
offset there, and of which the row with the later (timestamp, partition) is shown:

    the same place             it is one record: other content is never right
    two offsets, one partition the side with the lower one must not have read the higher one
    a row and none             a put that the side without it has not read, or a delete that the side with it has not
    two partitions             the side with the earlier row must not have read the later one, or have read that it is
                               gone, which the other then has not
"""

from __future__ import annotations

from typing import NamedTuple

from lastword.core.position import Position


class Row(NamedTuple):
    key: bytes
    # As JSON, or what stands for bytes that the codec can't read.
    value: bytes
    partition: int
    offset: int
    timestamp: int


class Seen(NamedTuple):
    """What one side answered about a key."""

    row: Row | None
    # The answer has everything before it.
    position: Position
    # The answer has nothing from there on.
    upto: Position


def contradict(one: Seen, other: Seen) -> bool:
    """Whether the two answers can't both be right: no difference of position explains them."""
    if one.row == other.row:
        return False
    if one.row is not None and other.row is not None and _place(one.row) == _place(other.row):
        return True
    return _is_ahead_of_itself(one) or _is_ahead_of_itself(other) or _misses(one, other) or _misses(other, one)


def concerned(one: Row | None, other: Row | None) -> set[int]:
    """The partitions on which it depends whether two rows are explained."""
    return {row.partition for row in (one, other) if row is not None}


def _place(row: Row) -> tuple[int, int]:
    return row.partition, row.offset


def _is_ahead_of_itself(seen: Seen) -> bool:
    row = seen.row
    return row is not None and row.offset >= seen.upto.get(row.partition, 0)


def _misses(one: Seen, other: Seen) -> bool:
    """Whether `one` should show the row of `other`, or a newer one, and shows neither."""
    row, shown = other.row, one.row
    if row is None or one.position.get(row.partition, 0) <= row.offset:
        return False
    if shown is not None and shown.partition == row.partition:
        return shown.offset < row.offset
    # It has read the record. Whatever it read after it in that partition, the other has read too and still shows it.
    is_live = other.position.get(row.partition, 0) >= one.upto.get(row.partition, 0)
    return is_live and (shown is None or (shown.timestamp, shown.partition) < (row.timestamp, row.partition))
