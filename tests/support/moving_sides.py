"""Sides of a comparison that fold a log. With each request a side reads on, as far as a random number says.

Records also leave the log at its start. Each side removes their rows at different times, in key order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from lastword.compare.remote_table import RemotePage, SidePosition
from lastword.compare.row_consistency import ComparedRow
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Record

Rows = dict[bytes, ComparedRow]


def ends_of(log: Sequence[Record]) -> dict[int, int]:
    """Partition -> its end offset."""
    ends: dict[int, int] = {}
    for record in log:
        ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
    return ends


_NOWHERE = Position()


def rows_at(
    log: Sequence[Record], at: Position, start_of: Callable[[bytes | None], Position] = lambda _: _NOWHERE
) -> Rows:
    """The state at a position, each key from a log start on."""
    state = fold(
        record
        for record in log
        if start_of(record.key).get(record.partition, 0) <= record.offset < at.get(record.partition, 0)
    )
    return {
        key: ComparedRow(key, record.value or b"", record.partition, record.offset, record.timestamp)
        for key, record in state.items()
    }


class MovingSide:
    """Keeps the promises of a server: rows are as new as the stated position, or newer; positions never go back."""

    def __init__(
        self,
        log: Sequence[Record],
        at: Position,
        *,
        start: Position = _NOWHERE,
        dice: random.Random | None = None,
        leaving: bool = False,
        reaches: bool = True,
        page_rows: int = 3,
        damage: Callable[[Rows], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._ends = ends_of(log)
        self._dice = dice
        self._leaving = leaving
        # Rows from before the topic's start are removed up to this key.
        self._cursor = b""
        self.log_start = self.topic_log_start = start
        self._reaches = reaches
        self._page_rows = page_rows
        self._damage = damage
        self.at = at
        self.pages = 0

    def page(self, cursor: str | None, reach: Position) -> RemotePage:
        self.pages += 1
        self._read_on()
        if self._reaches:
            self._move(reach)
        stated = self.at
        self._read_on()
        rows = rows_at(self._log, self.at, self._start_of)
        self._damage(rows)
        after = None if cursor is None else bytes.fromhex(cursor)
        keys = sorted(key for key in rows if after is None or key > after)
        page_keys = keys[: self._page_rows]
        following = page_keys[-1].hex() if len(keys) > len(page_keys) else None
        return RemotePage([rows[key] for key in page_keys], following, stated)

    def current_position(self) -> SidePosition:
        self._read_on()
        return SidePosition(self.at, self.log_start, self.topic_log_start)

    def _start_of(self, key: bytes | None) -> Position:
        return self.topic_log_start if key is not None and key < self._cursor else self.log_start

    def _read_on(self) -> None:
        if self._dice is None:
            return
        for partition, end in self._ends.items():
            if self._dice.random() < 0.4:
                self._move(Position({partition: min(end, self.at.get(partition, 0) + self._dice.randint(1, 3))}))
        if self._leaving and self._dice.random() < 0.5:
            self._remove_some(self._dice)

    def _remove_some(self, dice: random.Random) -> None:
        """Reads the start of the log, does a part of the pass over the rows, or ends the pass."""
        if self.log_start == self.topic_log_start:
            starts = {
                p: dice.randint(self.log_start.get(p, 0), max(self.log_start.get(p, 0), at))
                for p, at in self.at.items()
            }
            self.topic_log_start, self._cursor = Position(starts), b""
        elif self._cursor < b"h" and dice.random() < 0.7:
            self._cursor = bytes([dice.randint(max(self._cursor, b"a")[0], b"i"[0])])
        else:
            self.log_start, self._cursor = self.topic_log_start, b""

    def _move(self, to: Position) -> None:
        self.at = Position({p: max(self.at.get(p, 0), to.get(p, 0)) for p in self.at.keys() | to.keys()})
