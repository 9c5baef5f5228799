"""The rows of `board_state`: the counts of the board, each with the position that it belongs to.

    actions/0, team_stats/3    the count of a source partition: next offset, topic id, counts of all records before it
    refused                    the last refused records
    badges/NAME                the badges of a team, and when it earned them
    team/NAME                  a registered outside team; written by `lastword team add`

One process at a time writes the first three, in transactions: they always belong to one moment.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.teams.board.board_shapes import (
    ROW_FORMAT,
    BadgesRow,
    ListedRefusal,
    PartitionCount,
    RefusedRow,
    RegisteredTeam,
    RowFormat,
)
from lastword.teams.board.board_topics import ACTIONS, STATE, STATS
from lastword.teams.board.judging import is_team_name
from lastword.teams.board.tally import BADGES_PREFIX, NOBODY, REFUSED_KEY, SourcePartition, Tally

TEAM_PREFIX = "team/"
_DAMAGE = (msgspec.MsgspecError, ValueError, RecursionError)


class BoardRows:
    """The rows that were read so far."""

    def __init__(self) -> None:
        self.counts: dict[SourcePartition, PartitionCount] = {}
        self.listed: list[ListedRefusal] = []
        self.earned: dict[str, dict[str, int]] = {}
        self.registered: dict[str, int] = {}
        self.written: int | None = None  # when the writer wrote its last row

    def take(self, record: Record) -> bool:
        """Folds in a record of `board_state`; True if it is a row of the board's writer."""
        key = (record.key or b"").decode(errors="replace")
        if key.startswith(TEAM_PREFIX):
            self._take_team(key.removeprefix(TEAM_PREFIX), record.value)
            return False
        if record.value is None:
            return False
        try:
            is_of_writer = self._take_row(key, record.value)
        except _DAMAGE as damage:
            raise LastwordError(
                f"{STATE}, key {key[:60]!r}, offset {record.offset}: the value is not a row of a board ({damage}): "
                "delete the topic, and the board counts again from the start"
            ) from None
        if is_of_writer:
            self.written = record.timestamp
        return is_of_writer

    def tally(self) -> Tally:
        """A tally that continues from these rows."""
        tally = Tally()
        tally.counts = {place: count_copy(count) for place, count in self.counts.items()}
        tally.listed.extend(self.listed)
        tally.earned = {team: dict(earned) for team, earned in self.earned.items()}
        for count in tally.counts.values():
            tally.know({*count.actions, *count.numbers}, set(count.refused) - {NOBODY})
        tally.know(tally.earned, ())
        return tally

    def _take_team(self, name: str, value: bytes | None) -> None:
        """Takes a registered team. A row that is not one is ignored, because any program may write it."""
        self.registered.pop(name, None)
        if value is None or not is_team_name(name):
            return
        try:
            self.registered[name] = msgspec.json.decode(value, type=RegisteredTeam).registered
        except _DAMAGE:
            return

    def _take_row(self, key: str, value: bytes) -> bool:
        topic, _, partition = key.rpartition("/")
        if key != REFUSED_KEY and not key.startswith(BADGES_PREFIX) and topic not in (ACTIONS, STATS):
            return False
        if (version := msgspec.json.decode(value, type=RowFormat).format) != ROW_FORMAT:
            raise ValueError(f"its format is {version}, and this version reads format {ROW_FORMAT}")
        if key == REFUSED_KEY:
            self.listed = msgspec.json.decode(value, type=RefusedRow).last
        elif key.startswith(BADGES_PREFIX):
            self.earned[key.removeprefix(BADGES_PREFIX)] = msgspec.json.decode(value, type=BadgesRow).earned
        else:
            count = msgspec.json.decode(value, type=PartitionCount)
            self.counts[SourcePartition(topic, int(partition))] = count
        return True


def count_copy(count: PartitionCount) -> PartitionCount:
    return PartitionCount(
        topic_id=count.topic_id,
        next_offset=count.next_offset,
        missed=count.missed,
        actions=dict(count.actions),
        numbers=dict(count.numbers),
        refused={team: dict(reasons) for team, reasons in count.refused.items()},
    )


def rows_of(tally: Tally, keys: Iterable[str]) -> dict[str, bytes]:
    """The rows of a tally with these keys, in the form in which they are written."""
    return {key: msgspec.json.encode(_row(tally, key)) for key in sorted(keys)}


def _row(tally: Tally, key: str) -> PartitionCount | RefusedRow | BadgesRow:
    if key == REFUSED_KEY:
        return RefusedRow(last=list(tally.listed))
    if key.startswith(BADGES_PREFIX):
        return BadgesRow(earned=tally.earned[key.removeprefix(BADGES_PREFIX)])
    topic, _, partition = key.rpartition("/")
    return tally.counts[SourcePartition(topic, int(partition))]
