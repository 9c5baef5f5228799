"""Whether two answers about one key can both be right, when the two sides may have read differently far.

An answer comes with two positions of its side: it has every record before `position`, and no record after `upto`, a
position that was asked for afterwards. Both sides fold one log. So a difference is fine if some log gives both answers
when it is read up to two points between those positions. The law says: the live row of a key in a partition has the
highest offset there, and `core.split_keys` chooses the shown row. It follows:

    the same partition, offset one record: other content is never right
    two offsets, one partition the side with the lower offset must not have read the higher one
    a row and none             a put that the side without it has not read, or a delete that the side with it has not
    two partitions             the side with the earlier row must not have read the later one, or have read that it is
                               gone, which the other then has not

Records also leave a topic at its start, and their rows leave with them, on each side at its own time. So an answer also
comes with two log starts: no row from before `log_start` is in it, and no row from `topic_log_start` on has left it.
"""

from __future__ import annotations

from typing import NamedTuple

from lastword.core.position import Position
from lastword.core.split_keys import tie_break


class ComparedRow(NamedTuple):
    key: bytes
    # As JSON, or as base64 where the codec can't read the bytes.
    value: bytes
    partition: int
    offset: int
    timestamp: int
    # As JSON; nothing for a row without headers.
    headers: bytes = b""


_NOWHERE = Position()


class SideAnswer(NamedTuple):
    """The answer of one side about a key."""

    row: ComparedRow | None
    # The answer has every record before this position.
    position: Position
    # The answer has no record from this position on.
    upto: Position
    # The answer has no row from before this position, because those records had left the log.
    log_start: Position = _NOWHERE
    # A row from before this position may be missing in the answer.
    topic_log_start: Position = _NOWHERE


def contradict(one: SideAnswer, other: SideAnswer) -> bool:
    """Whether the two answers can't both be right: no difference of position or log start explains them."""
    if one.row == other.row:
        return False
    if one.row is not None and other.row is not None and _place(one.row) == _place(other.row):
        return True
    return _is_outside_of_its_log(one) or _is_outside_of_its_log(other) or _misses(one, other) or _misses(other, one)


def only_log_starts_explain(one: SideAnswer, other: SideAnswer) -> bool:
    """Whether two answers differ in a way that no difference of position explains, but one of log starts does."""
    as_if_none_left = (seen._replace(topic_log_start=_NOWHERE) for seen in (one, other))
    return not contradict(one, other) and contradict(*as_if_none_left)


def concerned(one: ComparedRow | None, other: ComparedRow | None) -> set[int]:
    """The partitions whose positions decide whether two rows are explained."""
    return {row.partition for row in (one, other) if row is not None}


def _place(row: ComparedRow) -> tuple[int, int]:
    return row.partition, row.offset


def _is_outside_of_its_log(seen: SideAnswer) -> bool:
    """Whether the row is past the position of its side, or before the log start that its side has reached."""
    row = seen.row
    if row is None:
        return False
    return not seen.log_start.get(row.partition, 0) <= row.offset < seen.upto.get(row.partition, 0)


def _misses(one: SideAnswer, other: SideAnswer) -> bool:
    """Whether `one` should show the row of `other`, or a newer row, but shows neither."""
    row, shown = other.row, one.row
    if row is None or one.position.get(row.partition, 0) <= row.offset:
        return False
    if shown is not None and shown.partition == row.partition:
        return shown.offset < row.offset
    if row.offset < one.topic_log_start.get(row.partition, 0):
        # The row may have left with its record.
        return False
    # `one` has read the record. The other side has read everything that `one` has read, and still shows the row.
    is_live = other.position.get(row.partition, 0) >= one.upto.get(row.partition, 0)
    return is_live and (shown is None or tie_break(shown) < tie_break(row))
