"""The counts of a process that may not be the writer: the rows of `board_state`, and the records after them.

The writer decides what no record shows: which offsets were missed, and which team was the last that had room. So a
reader takes every row of the writer as true, and folds the records after that row again.
"""

from __future__ import annotations

import sys

from lastword.core.record import Record
from lastword.teams.board.board_rows import BoardRows, count_copy
from lastword.teams.board.tally import JudgedRecord, PartitionStart, SourcePartition, Tally

# The number of records after the rows that are kept. The rows of a writer that is further behind are of no use.
_LONGEST_TAIL = 100_000


class ReaderView:
    """A tally that follows the sources; if it `agrees`, also the rows that another process writes."""

    def __init__(self, rows: BoardRows, *, agrees: bool) -> None:
        self.rows = rows
        self.tally: Tally = rows.tally()
        self._agrees = agrees
        self._tail: list[JudgedRecord] = []
        self._starts: dict[SourcePartition, PartitionStart] = {}
        self._reached: dict[SourcePartition, tuple[str, int]] = {}

    def begin(self, start: PartitionStart) -> int:
        """Starts to follow a partition, and returns the offset to read from."""
        self._starts[start.place] = start
        self.tally.begin(start)
        return self.tally.counts[start.place].next_offset

    def take(self, entry: JudgedRecord) -> None:
        if self.tally.take(entry) and self._agrees:
            self._tail.append(entry)
            if len(self._tail) > _LONGEST_TAIL:
                self._settle()

    def reach(self, place: SourcePartition, topic_id: str, offset: int) -> None:
        self._reached[place] = (topic_id, offset)
        self.tally.reach(place, topic_id, offset)

    def agree(self, records: list[Record]) -> None:
        """Takes new records of `board_state`: the rows of another writer are true from now on."""
        before = dict(self.rows.counts)
        are_written = [self.rows.take(record) for record in records]
        if not self._agrees or not any(are_written):
            return
        for place, count in before.items():
            now = self.rows.counts[place]
            if now.topic_id == count.topic_id and now.next_offset < count.next_offset:
                # This process has read further, and no longer has the records in between.
                self.rows.counts[place] = count
        own = self.tally
        self.tally = self.rows.tally()
        for start in self._starts.values():
            # The end of the log at the start is no bound for rows that were written later.
            self.tally.begin(start._replace(end=sys.maxsize))
        self._tail = [entry for entry in self._tail if self.tally.take(entry)]
        for place, (topic_id, offset) in self._reached.items():
            self.tally.reach(place, topic_id, offset)
        for team, earned in own.earned.items():
            for badge, at in earned.items():
                self.tally.award(team, badge, at)

    @property
    def is_ahead(self) -> bool:
        """Whether there are counts that the rows do not have yet."""
        return bool(self.tally.changed)

    def _settle(self) -> None:
        """Makes the counts the base instead of the rows, and forgets the records since them."""
        self.rows.counts = {place: count_copy(count) for place, count in self.tally.counts.items()}
        self.rows.listed = list(self.tally.listed)
        self._tail.clear()
