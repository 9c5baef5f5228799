from lastword.core.fold import fold
from lastword.core.record import Record


def log(*entries: tuple[str, str | None], partition: int = 0, timestamp: int = 0) -> list[Record]:
    return [
        Record(key.encode(), None if value is None else value.encode(), partition, offset, timestamp + offset)
        for offset, (key, value) in enumerate(entries)
    ]


def values(records: list[Record]) -> dict[str, str]:
    return {key.decode(): (record.value or b"?").decode() for key, record in fold(records).items()}


def test_the_highest_offset_of_a_key_wins() -> None:
    assert values(log(("a", "1"), ("b", "2"), ("a", "3"))) == {"a": "3", "b": "2"}


def test_the_order_of_arrival_changes_nothing() -> None:
    records = log(("a", "1"), ("b", "2"), ("a", "3"), ("b", None))
    assert fold(records) == fold(list(reversed(records)))


def test_a_tombstone_removes_its_key_and_a_later_value_brings_it_back() -> None:
    assert values(log(("a", "1"), ("a", None))) == {}
    assert values(log(("a", "1"), ("a", None), ("a", "2"))) == {"a": "2"}


def test_the_empty_value_is_a_value() -> None:
    assert fold(log(("a", "")))[b"a"].value == b""


def test_a_record_without_a_key_is_in_no_table() -> None:
    assert fold([Record(None, b"x", 0, 0, 0)]) == {}


def test_among_live_rows_in_two_partitions_the_later_timestamp_is_shown() -> None:
    old = Record(b"a", b"old", 1, 50, 1000)
    new = Record(b"a", b"new", 0, 3, 2000)
    assert fold([old, new])[b"a"] == fold([new, old])[b"a"] == new


def test_a_tombstone_removes_only_its_own_partitions_row() -> None:
    kept = Record(b"a", b"kept", 0, 0, 1000)
    tombstone = Record(b"a", None, 1, 9, 2000)
    assert fold([kept, tombstone])[b"a"] == kept
