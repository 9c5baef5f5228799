"""The fold of a partition in a Spark worker: what the law says, with any bound on its memory."""

from __future__ import annotations

from struct import Struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.core.fold import fold
from lastword.core.record import Record
from lastword.kafka.reading import Columns
from lastword.spark.partition_fold import NewestRows

HEAD = Struct(">qq")
PLENTY = 1 << 30

keys = st.none() | st.binary(max_size=3)
values = st.none() | st.binary(max_size=40)
logs = st.lists(st.tuples(keys, values), max_size=60)


def records_of(log: list[tuple[bytes | None, bytes | None]]) -> list[Record]:
    """The log with a gap after every third record, as compaction leaves them, and clocks that go backwards."""
    return [Record(key, value, 0, at + at // 3, 1000 - at) for at, (key, value) in enumerate(log)]


def folded(records: list[Record], memory_bytes: int) -> list[Record]:
    newest = NewestRows(memory_bytes)
    for at in range(0, len(records), 7):
        batch = records[at : at + 7]
        newest.fold(
            Columns(
                0,
                [record.key for record in batch],
                [record.value for record in batch],
                [record.offset for record in batch],
                [record.timestamp for record in batch],
                0,
            )
        )
    return [
        Record(key, row[HEAD.size :], 0, *HEAD.unpack_from(row)) for part in newest.taken() for key, row in part.items()
    ]


def disagreements(records: list[Record], found: list[Record]) -> list[str]:
    expected = fold(records)
    if len(found) != len({row.key for row in found}):
        return ["a key twice"]
    return [] if {row.key: row for row in found} == expected else ["rows"]


@given(log=logs, memory_bytes=st.sampled_from([PLENTY, 0, 400, 2000]))
@settings(max_examples=60)
def test_the_rows_are_the_fold_with_any_bound_on_memory(
    log: list[tuple[bytes | None, bytes | None]], memory_bytes: int
) -> None:
    records = records_of(log)
    assert disagreements(records, folded(records, memory_bytes)) == []


def test_the_oracle_objects_to_a_lost_key_a_revived_one_and_one_that_comes_twice() -> None:
    records = records_of([(b"a", b"1"), (b"b", b"2"), (b"b", None), (b"c", b"3")])
    right = folded(records, PLENTY)
    assert disagreements(records, right) == []
    assert disagreements(records, right[1:]) == ["rows"]
    assert disagreements(records, [*right, records[1]]) == ["rows"]
    assert disagreements(records, [*right, right[0]]) == ["a key twice"]


@pytest.mark.parametrize(("memory_bytes", "depth"), [(PLENTY, 0), (16_000, 2), (4_000, 2)])
def test_a_bound_below_the_rows_moves_them_to_the_disk_and_holds_at_every_depth(
    memory_bytes: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: set[int] = set()
    spill = NewestRows._spill

    def seen(rows: NewestRows) -> None:
        depths.add(rows._depth + 1)
        spill(rows)

    monkeypatch.setattr(NewestRows, "_spill", seen)
    newest = NewestRows(memory_bytes)
    for at in range(0, 6_000, 500):
        numbers = range(at, at + 500)
        newest.fold(Columns(0, [b"%d" % n for n in numbers], [b"v" * 10] * 500, [*numbers], [0] * 500, 0))
    parts = list(newest.taken())
    assert sum(map(len, parts)) == 6_000
    # Each file is spread anew: else the same keys would meet again, deeper and deeper.
    assert max(depths, default=0) == depth
    assert depth == 0 or max(map(len, parts)) * 200 <= memory_bytes
