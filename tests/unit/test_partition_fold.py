"""The fold of a partition in a Spark worker: what the law says, with any bound on its memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.core.fold import fold
from lastword.core.record import Headers, Record
from lastword.kafka.client.reading import Columns
from lastword.spark.reading.packed_rows import places_of, value_and_headers
from lastword.spark.reading.partition_fold import NewestRows
from support.columns import columns_of
from support.generated_headers import headers

PLENTY = 1 << 30

keys = st.none() | st.binary(max_size=3)
values = st.none() | st.binary(max_size=40)
logs = st.lists(st.tuples(keys, values, headers), max_size=60)
Entry = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, Headers]


def records_of(log: Sequence[Entry]) -> list[Record]:
    """The log with a gap after every third record, as compaction leaves them, and clocks that go backwards."""
    return [Record(key, value, 0, at + at // 3, 1000 - at, *more) for at, (key, value, *more) in enumerate(log)]


def folded(records: list[Record], memory_bytes: int) -> list[Record]:
    newest = NewestRows(memory_bytes)
    for at in range(0, len(records), 7):
        newest.fold(columns_of(0, records[at : at + 7]))
    found = []
    for key, row in [each for part in newest.taken() for each in part.items()]:
        (place,), (value, headers) = places_of([row]), value_and_headers(row)
        found.append(Record(key, value, 0, int(place["offset"]), int(place["timestamp"]), headers))
    return found


def disagreements(records: list[Record], found: list[Record]) -> list[str]:
    expected = fold(records)
    if len(found) != len({row.key for row in found}):
        return ["a key twice"]
    return [] if {row.key: row for row in found} == expected else ["rows"]


@given(log=logs, memory_bytes=st.sampled_from([PLENTY, 0, 400, 2000]))
@settings(max_examples=60)
def test_the_rows_are_the_fold_with_any_bound_on_memory(log: list[Entry], memory_bytes: int) -> None:
    records = records_of(log)
    assert disagreements(records, folded(records, memory_bytes)) == []


def test_the_oracle_objects_to_a_lost_key_a_revived_one_and_one_that_comes_twice() -> None:
    records = records_of([(b"a", b"1"), (b"b", b"2"), (b"b", None), (b"c", b"3")])
    right = folded(records, PLENTY)
    assert disagreements(records, right) == []
    assert disagreements(records, right[1:]) == ["rows"]
    assert disagreements(records, [*right, records[1]]) == ["rows"]
    assert disagreements(records, [*right, right[0]]) == ["a key twice"]
    assert disagreements(records_of([(b"a", b"1", (("trace", b"x"),))]), folded(records[:1], PLENTY)) == ["rows"]


@pytest.mark.parametrize(("memory_bytes", "spread"), [(PLENTY, 0), (16_000, 2), (4_000, 2)])
def test_a_bound_below_the_rows_moves_them_to_the_disk_and_holds_at_every_depth(memory_bytes: int, spread: int) -> None:
    newest = NewestRows(memory_bytes)
    for at in range(0, 6_000, 500):
        numbers = range(at, at + 500)
        newest.fold(Columns(0, [b"%d" % n for n in numbers], [b"v" * 10] * 500, [*numbers], [0] * 500, 0))
    parts = list(newest.taken())
    assert sum(map(len, parts)) == 6_000
    # Each file is spread anew over 32: else the same keys would meet again, deeper and deeper.
    assert 32**spread * 0.9 < len(parts) <= 32**spread
    assert spread == 0 or max(map(len, parts)) * 200 <= memory_bytes
