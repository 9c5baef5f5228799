"""Logs of `actions` and `team_stats` in memory, and a writer of the board that is killed now and then."""

from __future__ import annotations

import json

from lastword.core.record import Record
from lastword.teams.board.board_rows import BoardRows, rows_of
from lastword.teams.board.tally import JudgedRecord, PartitionStart, SourcePartition

ID = "the-topic"
# Each record as (distance from the offset before, (key, value)).
Log = list[tuple[int, tuple[bytes | None, bytes | None]]]


def action(team: str) -> bytes:
    return json.dumps({"customer": "c", "type": "t", "reason": "r", "team": team}).encode()


def stats(team: str, processed: int, flagged: int) -> bytes:
    return json.dumps({"team": team, "processed": processed, "flagged": flagged}).encode()


def begun(
    topic: str, partition: int, *, identity: str = ID, start: int = 0, end: int = 10**6, ended: int = 0
) -> PartitionStart:
    return PartitionStart(SourcePartition(topic, partition), identity, start, end, ended)


def board_with_rows(rows: dict[str, bytes], kept: BoardRows | None = None) -> BoardRows:
    """The board after these rows were written to `board_state`."""
    board = kept or BoardRows()
    for key, value in rows.items():
        board.take(Record(key.encode(), value, 0, 0, 5))
    return board


def records_of(partition: int, log: Log) -> list[Record]:
    records, offset = [], -1
    for gap, (key, value) in log:
        offset += gap
        records.append(Record(key, value, partition, offset, offset))
    return records


class CrashingWriter:
    """A writer that reads, stores, and is killed now and then. After a kill it reads again what it had not stored."""

    def __init__(self, logs: dict[SourcePartition, list[Record]]) -> None:
        self.logs = logs
        self.kept = BoardRows()
        self.start()

    def start(self) -> None:
        self.tally = self.kept.tally()
        for place in self.logs:
            self.tally.begin(begun(*place))

    def read(self, place: SourcePartition, count: int) -> None:
        next_offset = self.tally.counts[place].next_offset
        for record in [record for record in self.logs[place] if record.offset >= next_offset][:count]:
            self.tally.take(JudgedRecord.of(place.topic, ID, record))

    def keep(self) -> None:
        board_with_rows(rows_of(self.tally, self.tally.changed), self.kept)
        self.tally.changed.clear()

    def lose_position(self) -> None:
        """As a writer that stores counts and positions separately and is killed between the two."""
        for count in self.kept.counts.values():
            count.next_offset += 1
