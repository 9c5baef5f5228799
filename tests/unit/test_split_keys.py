"""Keys in two partitions: which row counts, and of which keys a reader is warned."""

from __future__ import annotations

from lastword.core.record import Record
from lastword.core.split_keys import TIE_BREAK, merged, tie_break


def newest(*records: tuple[bytes, bytes | None, int, int]) -> dict[int, dict[bytes, Record]]:
    """Of (key, value, partition, timestamp): the newest record of each key in each of three partitions."""
    by_partition: dict[int, dict[bytes, Record]] = {0: {}, 1: {}, 2: {}}
    for key, value, partition, timestamp in records:
        by_partition[partition][key] = Record(key, value, partition, 0, timestamp)
    return by_partition


def test_a_key_in_one_partition_is_there_or_deleted() -> None:
    found = merged(newest((b"a", b"1", 0, 5), (b"b", None, 1, 5)))
    assert (list(found.rows), found.split, found.deleted_elsewhere) == ([b"a"], frozenset(), frozenset())


def test_of_two_live_rows_the_later_counts_and_the_key_is_split() -> None:
    found = merged(newest((b"a", b"new", 0, 9), (b"a", b"old", 2, 5)))
    assert (found.rows[b"a"].value, found.split, found.deleted_elsewhere) == (b"new", frozenset({b"a"}), frozenset())


def test_a_later_delete_in_another_partition_removes_nothing_and_is_told() -> None:
    found = merged(newest((b"a", b"1", 0, 5), (b"a", None, 1, 9)))
    assert (found.rows[b"a"].value, found.split, found.deleted_elsewhere) == (b"1", frozenset(), frozenset({b"a"}))


def test_an_earlier_delete_in_another_partition_is_no_news() -> None:
    found = merged(newest((b"a", b"1", 0, 5), (b"a", None, 1, 3)))
    assert (found.rows[b"a"].value, found.split, found.deleted_elsewhere) == (b"1", frozenset(), frozenset())


def test_a_key_that_was_deleted_everywhere_is_gone() -> None:
    found = merged(newest((b"a", None, 0, 5), (b"a", None, 1, 9), (b"b", b"1", 1, 1)))
    assert (list(found.rows), found.split, found.deleted_elsewhere) == ([b"b"], frozenset(), frozenset())


def test_a_row_deleted_elsewhere_that_is_split_too_is_told_as_both() -> None:
    found = merged(newest((b"a", b"1", 0, 5), (b"a", b"2", 1, 6), (b"a", None, 2, 7)))
    assert (found.rows[b"a"].value, found.split, found.deleted_elsewhere) == (
        b"2",
        frozenset({b"a"}),
        frozenset({b"a"}),
    )


def test_the_columns_of_the_tie_break_are_its_fields() -> None:
    """Spark's fold sorts by these columns, the Python readers by the function: both must mean the same order."""
    record = Record(b"a", b"1", partition=2, offset=7, timestamp=9)
    assert tuple(getattr(record, column) for column in TIE_BREAK) == tie_break(record) == (9, 2)


def test_of_two_rows_with_one_timestamp_the_higher_partition_is_shown() -> None:
    found = merged(newest((b"a", b"high", 2, 5), (b"a", b"low", 0, 5)))
    assert found.rows[b"a"].value == b"high"
