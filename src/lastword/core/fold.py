"""The law, in its plainest form: the reference that every faster fold is checked against."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.core.record import Record
from lastword.core.split_keys import tie_break


def fold(records: Iterable[Record]) -> dict[bytes, Record]:
    """The newest record of every live key: within a partition the highest offset wins and a null value removes.

    A key with live records in two partitions (partitions were added, or another partitioner wrote) shows the one
    with the later (timestamp, partition), so that every reader gives the same answer. Records without a key change
    nothing; neither does the order in which the partitions arrive.
    """
    newest: dict[tuple[int, bytes], Record] = {}
    for record in records:
        if record.key is None:
            continue
        place = (record.partition, record.key)
        newest_yet = newest.get(place)
        if newest_yet is None or record.offset > newest_yet.offset:
            newest[place] = record
    state: dict[bytes, Record] = {}
    for (_, key), record in newest.items():
        if record.value is None:
            continue
        other = state.get(key)
        if other is None or tie_break(record) > tie_break(other):
            state[key] = record
    return state
