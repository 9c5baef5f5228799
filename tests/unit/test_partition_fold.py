"""The fold of a partition in a Spark worker: what the law says, with any bound on its memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
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
    with tempfile.TemporaryDirectory() as folder:
        newest = NewestRows(memory_bytes, Path(folder))
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
            Record(key, row[HEAD.size :], 0, *HEAD.unpack_from(row))
            for part in newest.taken()
            for key, row in part.items()
        ]


def disagreements(records: list[Record], found: list[Record]) -> list[str]:
    expected = fold(records)
    if len(found) != len({row.key for row in found}):
        return ["a key twice"]
    return [] if {row.key: row for row in found} == expected else ["rows"]


@given(log=logs, memory_bytes=st.sampled_from([PLENTY, 0, 400, 2000]))
@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("memory_bytes", [PLENTY, 16_000])
def test_a_bound_below_the_rows_moves_them_to_the_disk_and_holds_at_every_depth(
    memory_bytes: int, tmp_path: Path
) -> None:
    newest = NewestRows(memory_bytes, tmp_path)
    for at in range(0, 6_000, 500):
        numbers = range(at, at + 500)
        newest.fold(Columns(0, [b"%d" % n for n in numbers], [b"v" * 10] * 500, [*numbers], [0] * 500, 0))
    spilled = [*tmp_path.glob("*.rows")]
    parts = list(newest.taken())
    assert sum(map(len, parts)) == 6_000
    if memory_bytes == PLENTY:
        assert spilled == []
        assert len(parts) == 1
    else:
        assert len(spilled) == 32
        # 6,000 rows in 32 files are more than the bound, so the files were spread again.
        assert [*tmp_path.glob("*/*.rows")] != []
        assert max(map(len, parts)) * 200 <= memory_bytes
