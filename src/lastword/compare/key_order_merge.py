"""Two tables compared in key order, a stretch of keys at a time.

Both sides are asked for the page at one cursor. The keys up to the end of the shorter page are a stretch, and the next
stretch begins there. So only two pages are in memory, however large the tables are, and equal tables are read once.

A row that differs is read again, on both sides in turn, and each side is first asked to reach the position of the
other. Then both have read the same records, and a remaining difference contradicts the law. It counts after several
contradictions in a row, because a server shows its position a moment after its rows have changed. Expired rows (their
records left the log) are not waited for: the other side may remove them much later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from lastword.compare.remote_table import RemotePage, Side, SidePosition
from lastword.compare.row_consistency import ComparedRow, SideAnswer, concerned, contradict, only_log_starts_explain
from lastword.core.errors import BadInput
from lastword.core.position import Position

# How many unexplained differences are listed.
SHOWN = 10
# Pauses before the looks at rows that differ, and the number of looks in a row that must contradict. Once enough
# differences are listed, one look is enough to count further ones.
_PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.2, 0.3, 0.3)
_LOOKS = 4
_NOWHERE = Position()

Pair = tuple[ComparedRow | None, ComparedRow | None]
OnProgress = Callable[[int], None]


class Difference(NamedTuple):
    key: bytes
    first: ComparedRow | None
    second: ComparedRow | None


@dataclass(kw_only=True)
class Comparison:
    """The differences, and how many rows there are of each kind."""

    # All records before this position were compared: the lower position of the two sides at the start.
    position: Position = _NOWHERE
    # The log start of each side at its last answer: its rows are the fold from there on.
    log_starts: tuple[Position, Position] = (_NOWHERE, _NOWHERE)
    equal: int = 0
    # Rows that differ because one side has not read as far as the other.
    explained: int = 0
    # Rows that only one side still has, because their records left the topic at its start.
    left: int = 0
    different: int = 0
    # The first differences that nothing explains.
    differences: list[Difference] = field(default_factory=list)


class _Look(NamedTuple):
    """The rows of some keys on one side, with their positions and log starts as in SideAnswer."""

    rows: dict[bytes, ComparedRow]
    position: Position
    log_start: Position
    after: SidePosition

    @property
    def upto(self) -> Position:
        return self.after.position

    def seen(self, key: bytes) -> SideAnswer:
        return SideAnswer(self.rows.get(key), self.position, self.upto, self.log_start, self.after.topic_log_start)


class Merge:
    """Compares two sides. Of two logs (`one_log` false) only values and headers, because offsets differ."""

    def __init__(
        self,
        first: Side,
        second: Side,
        *,
        one_log: bool = True,
        on_progress: OnProgress = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._first = first
        self._second = second
        self._one_log = one_log
        self._on_progress = on_progress
        self._pause = pause
        self._found = Comparison()
        # The log start that each side gave last.
        self._log_starts: dict[Side, Position] = {}

    def compare(self) -> Comparison:
        found, cursor, done = self._found, None, b""
        self._log_starts = {side: side.current_position().log_start for side in (self._first, self._second)}
        while True:
            one, two = self._first.page(cursor, _NOWHERE), self._second.page(cursor, _NOWHERE)
            if cursor is None:
                found.position = lower(one.position, two.position)
            if cursor is not None and any(page.rows and page.rows[0].key <= done for page in (one, two)):
                raise BadInput(
                    "the pages of a table do not come in the order of its keys: serve it with key=bytes on both sides "
                    "and compare again"
                )
            last, following = _end(one, two)
            self._stretch(cursor, last, one.rows, two.rows)
            self._on_progress(found.equal + found.explained + found.left + found.different)
            found.log_starts = self._log_starts[self._first], self._log_starts[self._second]
            if following is None or last is None:
                return found
            cursor, done = following, last

    def _stretch(self, cursor: str | None, last: bytes | None, one: list[ComparedRow], two: list[ComparedRow]) -> None:
        differing: dict[bytes, Pair] = {}
        for first, second in joined(_upto(one, last), _upto(two, last)):
            if self._same(first, second):
                self._found.equal += 1
            else:
                row = first or second
                assert row is not None  # noqa: S101  one of the two has the key
                differing[row.key] = (first, second)
        if differing:
            self._settle(cursor, last, differing)

    def _settle(self, cursor: str | None, last: bytes | None, differing: dict[bytes, Pair]) -> None:
        """Reads the rows again until each difference is gone, explained, or contradicted often enough."""
        found = self._found
        looks = _LOOKS if found.different < SHOWN else 1
        contradicted, left = dict.fromkeys(differing, 0), set[bytes]()
        two = self._look(self._second, cursor, last, differing, _NOWHERE)
        for pause_s in _PAUSES_S[: looks * 2]:
            self._pause(pause_s)
            before, goal = two, self._goal(differing, two.upto)
            one = self._look(self._first, cursor, last, differing, goal)
            two = self._look(self._second, cursor, last, differing, self._goal(differing, one.upto))
            is_level = one.position.covers(goal) and two.position.covers(self._goal(differing, one.upto))
            for key in list(differing):
                tried = [(one.seen(key), other.seen(key)) for other in (before, two)]
                if any(self._same(a.row, b.row) for a, b in tried):
                    found.equal += one.rows.get(key) is not None
                    del differing[key], contradicted[key]
                    continue
                differing[key] = (one.rows.get(key), two.rows.get(key))
                is_wrong = not self._one_log or any(contradict(a, b) for a, b in tried)
                contradicted[key] = contradicted[key] + 1 if is_wrong else 0
                if self._one_log and any(only_log_starts_explain(a, b) for a, b in tried):
                    left.add(key)
            # Where a side makes no progress, an explained row stays explained.
            if all(
                count >= looks or (count == 0 and (not is_level or key in left)) for key, count in contradicted.items()
            ):
                break
        for key, (first, second) in differing.items():
            if contradicted[key] < looks:
                found.left += key in left
                found.explained += key not in left
                continue
            found.different += 1
            if len(found.differences) < SHOWN:
                found.differences.append(Difference(key, first, second))

    def _look(
        self, side: Side, cursor: str | None, last: bytes | None, keys: Collection[bytes], reach: Position
    ) -> _Look:
        """The rows of the keys, from the cursor to the last key: more than a page when rows have come meanwhile."""
        page = side.page(cursor, reach)
        # It holds for the rows of later pages, too.
        position, log_start, rows = page.position, self._log_starts[side], dict[bytes, ComparedRow]()
        while True:
            rows |= {row.key: row for row in page.rows if row.key in keys}
            if page.following is None or (last is not None and page.rows[-1].key >= last):
                after = side.current_position()
                self._log_starts[side] = after.log_start
                return _Look(rows, position, log_start, after)
            page = side.page(page.following, _NOWHERE)

    def _goal(self, differing: dict[bytes, Pair], upto: Position) -> Position:
        """The position that the other side has to reach, in the partitions of the rows that differ."""
        if not self._one_log:
            return _NOWHERE
        partitions = set[int]().union(*(concerned(*pair) for pair in differing.values()))
        return Position({partition: upto[partition] for partition in partitions if partition in upto})

    def _same(self, one: ComparedRow | None, other: ComparedRow | None) -> bool:
        if self._one_log or one is None or other is None:
            return one == other
        return (one.value, one.headers) == (other.value, other.headers)


def joined(one: Iterator[ComparedRow], two: Iterator[ComparedRow]) -> Iterator[Pair]:
    """The rows of two sides by key, in key order; None beside a row that only one side has."""
    first, second = next(one, None), next(two, None)
    while first is not None or second is not None:
        if second is None or (first is not None and first.key < second.key):
            yield first, None
            first = next(one, None)
        elif first is None or second.key < first.key:
            yield None, second
            second = next(two, None)
        else:
            yield first, second
            first, second = next(one, None), next(two, None)


def lower(one: Position, other: Position) -> Position:
    """The position that both have reached: for each partition the smaller offset."""
    return Position({p: min(one.get(p, 0), other.get(p, 0)) for p in one.keys() | other.keys()})


def _end(one: RemotePage, two: RemotePage) -> tuple[bytes | None, str | None]:
    """The last key that both pages cover, and the cursor after it; None when both are the last page."""
    ends = [(page.rows[-1].key, page.following) for page in (one, two) if page.following is not None]
    return min(ends, default=(None, None), key=lambda end: end[0] or b"")


def _upto(rows: list[ComparedRow], last: bytes | None) -> Iterator[ComparedRow]:
    return iter(rows) if last is None else takewhile(lambda row: row.key <= last, rows)
