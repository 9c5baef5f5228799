"""What a reader beside the writer shows: the rows of `board_state`, and what came after them.

A writer decides what no record says: what was missed, and which team was the last that had room. So a reader takes
every row that the writer keeps for the truth, and folds again what lies after it.
"""

from __future__ import annotations

import sys

from lastword.core.record import Record
from lastword.teams.board.board_rows import KeptBoard, count_copy
from lastword.teams.board.tally import Begun, JudgedRecord, SourcePartition, Tally

# So many records after the rows are remembered. A writer that is further behind is no help.
_LONGEST_TAIL = 100_000


class Shown:
    """A tally that follows the sources; where `agrees`, also the rows that another writes."""

    def __init__(self, kept: KeptBoard, *, agrees: bool) -> None:
        self.kept = kept
        self.tally: Tally = kept.tally()
        self._agrees = agrees
        self._tail: list[JudgedRecord] = []
        self._begun: dict[SourcePartition, Begun] = {}
        self._reached: dict[SourcePartition, tuple[str, int]] = {}

    def begin(self, begun: Begun) -> int:
        """Goes on with a partition; the offset to read from."""
        self._begun[begun.place] = begun
        self.tally.begin(begun)
        return self.tally.counts[begun.place].next_offset

    def take(self, entry: JudgedRecord) -> None:
        if self.tally.take(entry) and self._agrees:
            self._tail.append(entry)
            if len(self._tail) > _LONGEST_TAIL:
                self._settle()

    def reach(self, place: SourcePartition, topic_id: str, offset: int) -> None:
        self._reached[place] = (topic_id, offset)
        self.tally.reach(place, topic_id, offset)

    def agree(self, rows: list[Record]) -> None:
        """Rows of `board_state` that came: those of another writer are the truth from now on."""
        before = dict(self.kept.counts)
        are_written = [self.kept.take(row) for row in rows]
        if not self._agrees or not any(are_written):
            return
        for place, count in before.items():
            now = self.kept.counts[place]
            if now.topic_id == count.topic_id and now.next_offset < count.next_offset:
                # We have read further, and no longer know what.
                self.kept.counts[place] = count
        own = self.tally
        self.tally = self.kept.tally()
        for begun in self._begun.values():
            # Where the log ended when we began says nothing about rows that were written since.
            self.tally.begin(begun._replace(end=sys.maxsize))
        self._tail = [entry for entry in self._tail if self.tally.take(entry)]
        for place, (topic_id, offset) in self._reached.items():
            self.tally.reach(place, topic_id, offset)
        for team, earned in own.earned.items():
            for badge, at in earned.items():
                self.tally.award(team, badge, at)

    @property
    def is_ahead(self) -> bool:
        """Whether there is something that the rows do not say."""
        return bool(self.tally.changed)

    def _settle(self) -> None:
        """Takes what was counted for the rows' own, and forgets which records that was."""
        self.kept.counts = {place: count_copy(count) for place, count in self.tally.counts.items()}
        self.kept.listed = list(self.tally.listed)
        self._tail.clear()
