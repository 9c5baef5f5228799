"""The newest rows against the reference fold, in memory and spilled; how partitions and memory are shared out."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.core.fold import fold
from lastword.core.record import Headers, Record
from lastword.kafka.client.reading import Columns, ReadQueue
from lastword.replica.building.fold_worker import queue_within
from lastword.replica.building.newest_rows import NewestPackedRows, SortedRuns, SplitKey, in_key_order
from lastword.replica.building.rebuild import spread
from lastword.replica.store.row_layout import unpack_row
from support.columns import columns_of
from support.generated_headers import headers

MB = 1024 * 1024
KEYS = {0: [b"", b"a", b"\x00\xff"], 1: [b"b", b"user-1"]}

# (partition, key, value, headers): a key lives in one partition; None is a record without a key.
entries = st.sampled_from([0, 1]).flatmap(
    lambda partition: st.tuples(
        st.just(partition),
        st.none() | st.sampled_from(KEYS[partition]),
        st.none() | st.sampled_from([b"", b"1", b"22"]),
        headers,
    )
)
Entry = tuple[int, bytes | None, bytes | None, Headers]
# Batches, each with whether the rows move to the disk after it.
batches = st.lists(st.tuples(st.lists(entries, min_size=1, max_size=6), st.booleans()), max_size=6)


def numbered(log: list[Entry]) -> list[Record]:
    offsets = {0: itertools.count(), 1: itertools.count()}
    return [Record(key, value, partition, next(offsets[partition]), 7, more) for partition, key, value, more in log]


def as_columns(records: list[Record]) -> list[Columns]:
    return [columns_of(p, list(run)) for p, run in itertools.groupby(records, lambda record: record.partition)]


def rows_after(log: list[tuple[list[Record], bool]], folder: Path) -> list[Record]:
    newest, runs = NewestPackedRows(KEYS), SortedRuns(folder)
    for records, spilled in log:
        for columns in as_columns(records):
            newest.fold(columns)
        if spilled:
            runs.add(newest.take())
            newest.keep_tombstones = True
    if runs:
        runs.add(newest.take())
    rows = runs.in_key_order(KEYS) if runs else in_key_order(newest.take())
    found = [unpack_row(key, row) for key, row in rows]
    runs.remove()
    return found


@given(batches)
@settings(max_examples=30)
def test_the_rows_in_key_order_are_the_fold_wherever_they_were_spilled(
    log: list[tuple[list[Entry], bool]],
) -> None:
    records = numbered([entry for batch, _ in log for entry in batch])
    left = iter(records)
    with tempfile.TemporaryDirectory() as folder:
        cut = [(list(itertools.islice(left, len(batch))), spilled) for batch, spilled in log]
        found = rows_after(cut, Path(folder) / "runs")
        assert list(Path(folder).iterdir()) == []
    expected = fold(records)
    assert found == [expected[key] for key in sorted(expected)]


def test_a_tombstone_that_is_not_kept_in_a_run_would_bring_the_row_back(tmp_path: Path) -> None:
    """The negative control of the test above: it is the tombstone in the run that removes the row."""
    put, delete = as_columns([Record(b"a", b"1", 0, 0, 7)]), as_columns([Record(b"a", None, 0, 1, 7)])
    for keep, expected in ((True, []), (False, [b"a"])):
        newest, runs = NewestPackedRows([0]), SortedRuns(tmp_path / "runs")
        newest.fold(put[0])
        runs.add(newest.take())
        newest.keep_tombstones = keep
        newest.fold(delete[0])
        runs.add(newest.take())
        assert [key for key, _ in runs.in_key_order([0])] == expected
        runs.remove()


def test_headers_that_are_not_read_with_the_columns_are_missing_in_the_rows(tmp_path: Path) -> None:
    """The negative control for headers: the comparison with the fold sees that they are gone."""
    records = [Record(b"a", b"1", 0, 0, 7, (("trace", None),)), Record(b"b", b"2", 0, 1, 7)]
    assert rows_after([(records, False)], tmp_path / "runs") == records
    (columns,) = as_columns(records)
    newest = NewestPackedRows([0])
    newest.fold(columns._replace(headers=None))
    assert [unpack_row(key, row) for key, row in in_key_order(newest.take())] != records


@pytest.mark.parametrize("spilled", [True, False])
def test_a_live_key_in_two_partitions_is_found_and_a_deleted_one_is_none(tmp_path: Path, spilled: bool) -> None:
    split = [Record(b"a", b"1", 0, 0, 7), Record(b"a", b"2", 1, 0, 7)]
    with pytest.raises(SplitKey):
        rows_after([(split, spilled)], tmp_path / "runs")
    healed = [*split, Record(b"a", None, 0, 1, 7)]
    assert rows_after([(healed, spilled)], tmp_path / "others") == [split[1]]


def test_the_estimate_grows_with_keys_and_with_rows_that_grow_and_not_with_the_same_rows_again() -> None:
    newest = NewestPackedRows([0])

    def fold_in(numbers: range, size: int) -> float:
        keys: list[bytes | None] = [b"%08d" % number for number in numbers]
        values: list[bytes | None] = [b"x" * size] * len(keys)
        newest.fold(Columns(0, keys, values, list(numbers), list(numbers), 0))
        return newest.estimated_bytes()

    thousand = fold_in(range(1000), 200)
    assert 1000 * 300 < thousand < 1000 * 600
    assert fold_in(range(1000), 200) == pytest.approx(thousand, rel=0.1)
    assert fold_in(range(1000, 10_000), 200) > 5 * thousand
    # One small key again and again does not hide how large the rest is.
    many = newest.estimated_bytes()
    for _ in range(100):
        fold_in(range(1), 1)
    assert newest.estimated_bytes() == pytest.approx(many, rel=0.1)
    for _ in range(100):
        fold_in(range(10_000), 2000)
    assert newest.estimated_bytes() > 10_000 * 2000


def test_the_estimate_knows_of_headers() -> None:
    newest = NewestPackedRows([0])
    newest.fold(columns_of(0, [Record(b"%d" % n, b"", 0, n, 7, (("trace", b"x" * 2000),)) for n in range(1000)]))
    assert newest.estimated_bytes() > 1000 * 2000


def test_the_queue_shrinks_with_the_memory_and_never_grows_over_its_defaults() -> None:
    assert queue_within(10_000 * MB) == ReadQueue()
    assert queue_within(0).batch == 2
    small = queue_within(128 * MB)
    assert small.kbytes * 1024 + small.records * 450 <= 128 * MB // 6
    assert small.settings()["fetch_message_max_bytes"] < small.kbytes * 1024


def test_partitions_are_spread_by_what_there_is_to_read() -> None:
    assert spread({0: 10, 1: 10, 2: 10, 3: 10}, 2) == [[0, 2], [1, 3]]
    assert spread({0: 1, 1: 100, 2: 40, 3: 60}, 2) == [[1, 0], [3, 2]]
    assert spread({5: 3}, 8) == [[5]]
    assert spread({}, 8) == []
