"""What a comparison makes of rows that differ: against folds of one log that are read differently far."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lastword.compare.key_order_merge import SHOWN, Comparison, Merge, joined, lower
from lastword.compare.row_consistency import ComparedRow, SideAnswer, contradict, only_log_starts_explain
from lastword.core.position import Position
from lastword.core.record import Record
from support.moving_sides import MovingSide, Rows, ends_of, rows_at

KEYS = [bytes([letter]) for letter in b"abcdefgh"]
PARTITIONS = 2
Rule = Callable[[SideAnswer, SideAnswer], bool]

# (key, value, partition, timestamp): few keys, so that they meet again; any partition, so that some live in two.
entries = st.tuples(
    st.sampled_from(KEYS), st.none() | st.sampled_from([b"1", b"2"]), st.integers(0, PARTITIONS - 1), st.integers(0, 3)
)
dice = st.integers(0, 2**32).map(random.Random)


def numbered(entries: list[tuple[bytes, bytes | None, int, int]]) -> list[Record]:
    """The log with offsets: each partition counts its own."""
    ends = dict.fromkeys(range(PARTITIONS), 0)
    log = []
    for key, value, partition, timestamp in entries:
        log.append(Record(key, value, partition, ends[partition], timestamp))
        ends[partition] += 1
    return log


logs = st.lists(entries, max_size=40).map(numbered)


def somewhere(log: list[Record], roll: random.Random) -> Position:
    return Position({partition: roll.randint(0, end) for partition, end in ends_of(log).items()})


def compared(first: MovingSide, second: MovingSide, *, one_log: bool = True) -> Comparison:
    return Merge(first, second, one_log=one_log, pause=lambda _: None).compare()


def row(partition: int, offset: int, value: bytes = b"1", timestamp: int = 0) -> ComparedRow:
    return ComparedRow(b"k", value, partition, offset, timestamp)


def seen(
    shown: ComparedRow | None, position: str, upto: str | None = None, *, log_start: str = "", topic_log_start: str = ""
) -> SideAnswer:
    positions = (position, upto or position, log_start, topic_log_start or log_start)
    return SideAnswer(shown, *map(Position.parse, positions))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # A row on one side only.
        (seen(row(0, 5), "0:9"), seen(None, "0:5"), False),  # a put that the other has not read
        (seen(row(0, 5), "0:9"), seen(None, "0:8"), True),  # it has, and all it read is read here too
        (seen(row(0, 5), "0:7"), seen(None, "0:8"), False),  # it may have read a delete
        (seen(row(0, 5), "0:8"), seen(None, "0:7", "0:9"), False),  # so may this one, whose answer is newer than 7
        (seen(row(0, 5), "1:9"), seen(None, "0:5,1:9"), True),  # a row of a partition of which it has read nothing
        (seen(row(0, 9), "0:7", "0:9"), seen(None, "0:7"), True),  # a row that its own side can't have read yet
        (seen(row(0, 8), "0:7", "0:9"), seen(None, "0:7"), False),  # one that it read after it told its position
        # Two offsets of one partition.
        (seen(row(0, 5), "0:7"), seen(row(0, 7), "0:9"), False),  # the newer one is not read yet
        (seen(row(0, 5), "0:8"), seen(row(0, 7), "0:9"), True),
        (seen(row(0, 5), "0:8"), seen(row(0, 7), "0:8"), True),
        # One place is one record.
        (seen(row(0, 5), "0:9"), seen(row(0, 5), "0:6"), False),
        (seen(row(0, 5, b"1"), "0:9"), seen(row(0, 5, b"2"), "0:6"), True),
        (seen(row(0, 5, b"1"), "0:5", "0:6"), seen(row(0, 5, b"2"), "0:5", "0:6"), True),
        (seen(row(0, 5, timestamp=1), "0:9"), seen(row(0, 5, timestamp=2), "0:9"), True),
        # A key in two partitions: of two live rows the later (timestamp, partition) is shown.
        (seen(row(0, 5, timestamp=2), "0:9,1:9"), seen(row(1, 3, timestamp=1), "0:5,1:9"), False),  # not read yet
        (seen(row(0, 5, timestamp=2), "0:9,1:9"), seen(row(1, 3, timestamp=1), "0:9,1:9"), True),  # should be shown
        (seen(row(0, 5, timestamp=2), "0:8,1:9"), seen(row(1, 3, timestamp=1), "0:9,1:9"), False),  # deleted there
        (seen(row(0, 5, timestamp=1), "0:9,1:9"), seen(row(1, 3, timestamp=1), "0:9,1:9"), True),
        (seen(row(0, 5, timestamp=1), "0:9,1:3"), seen(row(1, 3, timestamp=1), "0:9,1:9"), False),
    ],
)
def test_what_a_lower_position_explains(one: SideAnswer, other: SideAnswer, expected: bool) -> None:
    assert contradict(one, other) is expected
    assert contradict(other, one) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # A row on one side only, read by both.
        (seen(row(0, 5), "0:9"), seen(None, "0:9", log_start="0:6"), False),  # its record has left there
        (seen(row(0, 5), "0:9"), seen(None, "0:9", log_start="0:5"), True),  # the log still has it
        (seen(row(0, 5), "0:9"), seen(None, "0:9", topic_log_start="0:6"), False),  # it may have left already
        (
            seen(row(0, 5), "0:9", topic_log_start="0:6"),
            seen(None, "0:9"),
            True,
        ),  # that the row may leave explains nothing
        (seen(row(0, 5), "0:9", log_start="0:6"), seen(None, "0:9", log_start="0:6"), True),  # it should have left
        (seen(row(0, 5), "0:9"), seen(None, "0:9,1:9", log_start="0:0,1:6"), True),  # another partition's start
        # Two offsets of one partition: whoever read the newer one can't show the older one.
        (seen(row(0, 5), "0:9", topic_log_start="0:9"), seen(row(0, 7), "0:9"), True),
        # A key in two partitions, where the later row left one side.
        (seen(row(0, 5, timestamp=2), "0:9,1:9"), seen(row(1, 3, timestamp=1), "0:9,1:9", log_start="0:6,1:0"), False),
        (seen(row(0, 5, timestamp=2), "0:9,1:9"), seen(row(1, 3, timestamp=1), "0:9,1:9", log_start="0:5,1:0"), True),
    ],
)
def test_what_a_lower_log_start_explains(one: SideAnswer, other: SideAnswer, expected: bool) -> None:
    assert (contradict(one, other), contradict(other, one)) == (expected, expected)
    assert (only_log_starts_explain(one, other), only_log_starts_explain(other, one)) == (not expected, not expected)


def false_alarms(rule: Rule, log: list[Record], roll: random.Random) -> list[tuple[SideAnswer, SideAnswer]]:
    """Answers of two readers of one log, each at some place between its positions, that the rule objects to."""
    readers = []
    for _ in range(2):
        position = somewhere(log, roll)
        at, upto = dict(position), dict(position)
        starts: list[dict[int, int]] = [{}, {}, {}]
        for partition, end in ends_of(log).items():
            at[partition] = roll.randint(position[partition], end)
            upto[partition] = roll.randint(at[partition], end)
            # Where all rows have left, where those of this answer have, and where any may have.
            offsets = sorted(roll.randint(0, at[partition]) for _ in starts)
            for start, offset in zip(starts, offsets, strict=True):
                start[partition] = offset if roll.random() < 0.5 else min(offsets)
        log_start, left, topic_log_start = (Position(start) for start in starts)
        rows = rows_at(log, Position(at), lambda _, left=left: left)  # type: ignore[misc]
        readers.append((rows, (position, Position(upto), log_start, lower_bound(topic_log_start, dict(left)))))
    found = []
    for key in KEYS:
        one, other = (SideAnswer(rows.get(key), *positions) for rows, positions in readers)
        if rule(one, other):
            found.append((one, other))
    return found


@settings(max_examples=500)
@given(logs, dice)
def test_two_readers_of_one_log_never_contradict_each_other(log: list[Record], roll: random.Random) -> None:
    assert false_alarms(contradict, log, roll) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda one, other: one.row != other.row,
        # The position told, taken for where the answer ends.
        lambda one, other: contradict(one._replace(upto=one.position), other._replace(upto=other.position)),
        # Everything up to the end, taken for read.
        lambda one, other: contradict(one._replace(position=one.upto), other._replace(position=other.upto)),
        # Rows that may have left, taken for rows that must be there.
        lambda one, other: contradict(
            one._replace(topic_log_start=one.log_start), other._replace(topic_log_start=other.log_start)
        ),
        # Rows that may have left, taken for rows that must have.
        lambda one, other: contradict(
            one._replace(log_start=one.topic_log_start), other._replace(log_start=other.topic_log_start)
        ),
    ],
)
def test_the_check_objects_to_a_rule_that_is_broken(broken: Rule) -> None:
    log = numbered([(KEYS[n % 7], None if n % 4 == 3 else b"1", n % 2, n % 3) for n in range(30)])
    assert any(false_alarms(broken, log, random.Random(seed)) for seed in range(1000))


@given(logs, dice)
def test_two_sides_that_read_on_meanwhile_are_equal(log: list[Record], roll: random.Random) -> None:
    first, second = (MovingSide(log, somewhere(log, roll), dice=roll) for _ in range(2))
    found = compared(first, second)
    assert (found.different, found.differences) == (0, [])


@given(logs, dice)
def test_two_sides_that_lose_rows_with_their_records_meanwhile_are_equal(
    log: list[Record], roll: random.Random
) -> None:
    first, second = (MovingSide(log, somewhere(log, roll), dice=roll, leaving=True) for _ in range(2))
    found = compared(first, second)
    assert (found.different, found.differences) == (0, [])


@given(logs, dice)
def test_rows_that_only_one_side_still_has_are_explained_by_its_log_start(
    log: list[Record], roll: random.Random
) -> None:
    at, start = Position(ends_of(log)), somewhere(log, roll)
    found = compared(MovingSide(log, at), MovingSide(log, at, start=start))
    whole, held = rows_at(log, at), rows_at(log, at, lambda _: start)
    unlike = {key for key in whole if whole[key] != held.get(key)}
    assert (found.different, found.explained, found.left) == (0, 0, len(unlike))
    assert found.equal == len(whole) - len(unlike)


def test_rows_that_left_one_side_are_not_waited_for() -> None:
    log = numbered([(b"%03d" % number, b"1", 0, 0) for number in range(100)])
    at = Position(ends_of(log))
    first, second = MovingSide(log, at, page_rows=10), MovingSide(log, at, start=at, page_rows=10)
    found = compared(first, second)
    assert (found.left, *map(str, found.log_starts)) == (100, "", "0:100")
    # Each page once, and once more to settle it.
    assert first.pages == 20


@given(logs, dice, st.integers(1, 5), st.integers(1, 5))
def test_two_sides_at_rest_are_equal_row_by_row(log: list[Record], roll: random.Random, one: int, two: int) -> None:
    at = somewhere(log, roll)
    found = compared(MovingSide(log, at, page_rows=one), MovingSide(log, at, page_rows=two))
    assert (found.equal, found.explained, found.different) == (len(rows_at(log, at)), 0, 0)
    assert found.position == at


@given(logs, dice)
def test_a_side_that_stands_still_is_explained_by_its_position(log: list[Record], roll: random.Random) -> None:
    behind, end = somewhere(log, roll), Position(ends_of(log))
    found = compared(MovingSide(log, behind, reaches=False), MovingSide(log, end))
    then, now = rows_at(log, behind), rows_at(log, end)
    unlike = {key for key in then.keys() | now.keys() if then.get(key) != now.get(key)}
    assert (found.different, found.explained) == (0, len(unlike))
    assert found.position == lower(behind, end)


# What may be wrong with the row of a key.
DAMAGES: dict[str, Callable[[Rows, bytes], None]] = {
    "another value": lambda rows, key: rows.update({key: rows[key]._replace(value=b"altered")}),
    "another timestamp": lambda rows, key: rows.update({key: rows[key]._replace(timestamp=99)}),
    "gone": lambda rows, key: rows.pop(key) and None,
    "from a place that is not read yet": lambda rows, key: rows.update({key: rows[key]._replace(offset=1000)}),
    "in another partition": lambda rows, key: rows.update({key: rows[key]._replace(partition=1 - rows[key].partition)}),
    "from a place before the log": lambda rows, key: rows.update({key: rows[key]._replace(offset=-1)}),
}


def found_by(
    damage: str, log: list[Record], key: bytes, roll: random.Random, *, damaged_first: bool, moving: bool
) -> Comparison:
    """What a comparison of a whole side with one that has a damaged row finds, the key being read on both."""

    def harm(rows: Rows) -> None:
        DAMAGES[damage](rows, key)

    # Both have read all that the log has of the key; of what follows, any part.
    read = ends_of([record for record in log if record.key == key])
    sides = []
    for harms in (damaged_first, not damaged_first):
        at = lower_bound(somewhere(log, roll), read)
        dice = roll if moving else None
        sides.append(MovingSide(log, at, dice=dice, damage=harm) if harms else MovingSide(log, at, dice=dice))
    return compared(*sides)


def lower_bound(at: Position, read: dict[int, int]) -> Position:
    return Position({partition: max(offset, read.get(partition, 0)) for partition, offset in at.items()})


@settings(max_examples=300)
# A row that its own side claims from a place which the other reaches only when it is asked to.
@example(
    log=numbered([(b"e", b"1", 0, 0), (b"a", None, 1, 0), (b"a", None, 1, 0), (b"a", None, 1, 0), (b"b", b"1", 1, 0)]),
    roll=random.Random(670),
    damage="in another partition",
    damaged_first=True,
    moving=True,
)
@given(logs, dice, st.sampled_from(sorted(DAMAGES)), st.booleans(), st.booleans())
def test_a_damaged_row_is_always_found_and_it_alone(
    log: list[Record], roll: random.Random, damage: str, damaged_first: bool, moving: bool
) -> None:
    rows = rows_at(log, Position(ends_of(log)))
    assume(rows)
    key = roll.choice(sorted(rows))
    found = found_by(damage, log, key, roll, damaged_first=damaged_first, moving=moving)
    assert [difference.key for difference in found.differences] == [key]


@settings(max_examples=200)
@given(logs, dice, st.booleans(), st.integers(0, PARTITIONS - 1), st.booleans())
def test_a_row_that_was_added_is_always_found_and_it_alone(
    log: list[Record], roll: random.Random, added_first: bool, partition: int, moving: bool
) -> None:
    assume(ends_of(log).get(partition, 0) > 0)
    start = lower_bound(somewhere(log, roll), dict.fromkeys(ends_of(log), 1))
    ghost = ComparedRow(b"ee", b"1", partition, 0, 0)
    dice = roll if moving else None
    sides = [MovingSide(log, start, dice=dice, damage=lambda rows: rows.update({ghost.key: ghost}))]
    sides.insert(not added_first, MovingSide(log, start, dice=dice))
    found = compared(*sides)
    assert [difference.key for difference in found.differences] == [ghost.key]


@pytest.mark.parametrize(("one", "two"), list(product([True, False], repeat=2)))
def test_of_two_logs_keys_and_values_are_compared(one: bool, two: bool) -> None:
    first = numbered([(b"a", b"1", 0, 1), (b"b", b"2", 1, 1)])
    second = numbered([(b"b", b"0", 0, 2), (b"b", b"2" if one else b"3", 0, 2), (b"a", b"1" if two else None, 1, 2)])
    sides = (MovingSide(log, Position(ends_of(log))) for log in (first, second))
    found = compared(*sides, one_log=False)
    expected = [key for key, is_same in ((b"a", two), (b"b", one)) if not is_same]
    assert [difference.key for difference in found.differences] == expected


def test_only_the_first_differences_are_kept_and_all_are_counted() -> None:
    log = numbered([(b"%03d" % number, b"1", 0, 0) for number in range(100)])
    at = Position(ends_of(log))
    second = MovingSide(log, at, damage=lambda rows: rows.clear())
    found = compared(MovingSide(log, at), second)
    assert (found.different, found.equal, len(found.differences)) == (100, 0, SHOWN)
    assert [difference.key for difference in found.differences] == [b"%03d" % number for number in range(SHOWN)]


def test_equal_tables_are_read_once() -> None:
    log = numbered([(b"%03d" % number, b"1", 0, 0) for number in range(100)])
    first, second = (MovingSide(log, Position(ends_of(log)), page_rows=10) for _ in range(2))
    assert compared(first, second).equal == 100
    assert (first.pages, second.pages) == (10, 10)


def test_rows_are_joined_by_key() -> None:
    one, two = ([ComparedRow(key, b"", 0, 0, 0) for key in keys] for keys in ([b"a", b"b", b"d"], [b"b", b"c"]))
    pairs = [(a and a.key, b and b.key) for a, b in joined(iter(one), iter(two))]
    assert pairs == [(b"a", None), (b"b", b"b"), (None, b"c"), (b"d", None)]
