"""The newest rows against the reference fold: in memory, in runs, and merged; how work and memory are shared out."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocksdict import IngestExternalFileOptions, Rdict

from lastword.core.errors import LastwordError
from lastword.core.fold import fold
from lastword.core.record import Headers, Record
from lastword.kafka.client.reading import Columns, ReadQueue
from lastword.replica.building.fold import queue_within, room_within
from lastword.replica.building.key_ranges import KeyRange, files_of_ranges
from lastword.replica.building.merge import SplitKey, merged
from lastword.replica.building.newest_rows import NewestPackedRows, layers
from lastword.replica.building.rebuild import spread
from lastword.replica.building.sorted_runs import RunsWriter, read_index
from lastword.replica.building.tasks import MergedRows, MergeTask, RowFile
from lastword.replica.store.column_family import ColumnFamily
from lastword.replica.store.database import store_options
from lastword.replica.store.row_layout import is_poison, unpack_row
from support.columns import columns_of
from support.generated_headers import headers

MB = 1024 * 1024
PARTITIONS = [0, 1]
EVERYTHING = [KeyRange(b"", None)]

# (partition, key, value, headers); None is a record without a key. A key of both partitions may be live in one of them.
entries = st.tuples(
    st.sampled_from(PARTITIONS),
    st.none() | st.sampled_from([b"", b"a", b"\x00\xff", b"b", b"user-1"]),
    st.none() | st.sampled_from([b"", b"1", b"22", b"{"]),
    headers,
)
Entry = tuple[int, bytes | None, bytes | None, Headers]
# Batches, each with whether the rows move to the disk after it.
batches = st.lists(st.tuples(st.lists(entries, min_size=1, max_size=6), st.booleans()), max_size=8)


def numbered(log: list[Entry]) -> list[Record]:
    offsets = {0: itertools.count(), 1: itertools.count()}
    return [Record(key, value, partition, next(offsets[partition]), 7, more) for partition, key, value, more in log]


def as_columns(records: list[Record]) -> list[Columns]:
    return [columns_of(p, list(run)) for p, run in itertools.groupby(records, lambda record: record.partition)]


def write_runs(log: list[tuple[list[Record], bool]], file: Path) -> None:
    newest, runs = NewestPackedRows(PARTITIONS), RunsWriter(file)
    for number, (records, spilled) in enumerate(log, 1):
        for columns in as_columns(records):
            newest.fold(columns)
        if spilled or number == len(log):
            for layer in layers(newest.take()):
                runs.add(layer)
    runs.close()


def merge(
    folder: Path, runs_files: list[Path], ranges: list[KeyRange], codec: str = "json"
) -> tuple[list[tuple[bytes, bytes]], MergedRows]:
    """The keys and packed rows, as RocksDB reads them, and the counts."""
    file = folder / "rows"
    done = merged(
        MergeTask(
            runs_files=[str(each) for each in runs_files],
            row_files=[RowFile(file=str(file), ranges=ranges)],
            value_codec=codec,
        ),
        lambda _: None,
    )
    if not file.exists():
        return [], done
    db = Rdict(str(folder / "db"), store_options())
    db.ingest_external_file([str(file)], IngestExternalFileOptions())
    rows = list(ColumnFamily(db).items())
    db.close()
    return rows, done


def rows_after(log: list[tuple[list[Record], bool]], folder: Path) -> list[Record]:
    write_runs(log, folder / "runs")
    return [unpack_row(key, row) for key, row in merge(folder, [folder / "runs"], EVERYTHING)[0]]


def live_partitions(records: list[Record], key: bytes | None) -> set[int]:
    return {p for p in PARTITIONS if key in fold([record for record in records if record.partition == p])}


@given(batches, st.lists(st.binary(max_size=2), max_size=3, unique=True))
@settings(max_examples=60)
def test_merged_runs_are_the_fold_whatever_moved_to_the_disk_and_however_keys_are_divided(
    log: list[tuple[list[Entry], bool]], cuts: list[bytes]
) -> None:
    records = numbered([entry for batch, _ in log for entry in batch])
    left = iter(records)
    edges = [b"", *sorted(set(cuts) - {b""})]
    ranges = [*map(KeyRange, edges, [*edges[1:], None])]
    keys = {record.key for record in records if record.key is not None}
    split = any(len(live_partitions(records, key)) > 1 for key in keys)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs([(list(itertools.islice(left, len(batch))), spilled) for batch, spilled in log], folder / "runs")
        if split:
            with pytest.raises(SplitKey):
                merge(folder, [folder / "runs"], ranges)
            return
        found, done = merge(folder, [folder / "runs"], ranges)
        in_runs = sum(block.rows for run in read_index(folder / "runs") for block in run)
    live = {p: fold([record for record in records if record.partition == p]) for p in PARTITIONS}
    expected = {key: record for rows in live.values() for key, record in rows.items()}
    assert [unpack_row(key, row) for key, row in found] == [expected[key] for key in sorted(expected)]
    assert sum(done.dropped.values()) == in_runs - len(expected)
    unreadable = {key for key, record in expected.items() if record.value in (b"", b"{")}
    assert {key for key, row in found if is_poison(row)} == unreadable
    for partition, rows in live.items():
        assert done.poison.get(partition, 0) == len(unreadable & rows.keys())


def test_a_tombstone_that_is_not_kept_in_a_run_would_bring_the_row_back(tmp_path: Path) -> None:
    """The negative control of the test above: it is the tombstone in the run that removes the row."""
    put, delete = as_columns([Record(b"a", b"1", 0, 0, 7)]), as_columns([Record(b"a", None, 0, 1, 7)])
    for is_kept, expected in ((True, []), (False, [b"a"])):
        folder = tmp_path / str(is_kept)
        folder.mkdir()
        newest, runs = NewestPackedRows([0]), RunsWriter(folder / "runs")
        newest.fold(put[0])
        runs.add(newest.take()[0])
        if not is_kept:
            newest = NewestPackedRows([0])
        newest.fold(delete[0])
        runs.add(newest.take()[0])
        runs.close()
        assert [key for key, _ in merge(folder, [folder / "runs"], EVERYTHING)[0]] == expected


def test_headers_that_are_not_read_with_the_columns_are_missing_in_the_rows(tmp_path: Path) -> None:
    """The negative control for headers: the comparison with the fold sees that they are gone."""
    records = [Record(b"a", b"1", 0, 0, 7, (("trace", None),)), Record(b"b", b"2", 0, 1, 7)]
    assert rows_after([(records, False)], tmp_path) == records
    (columns,) = as_columns(records)
    newest = NewestPackedRows([0])
    newest.fold(columns._replace(headers=None))
    assert [unpack_row(key, row) for key, row in sorted(newest.take()[0].items())] != records


@pytest.mark.parametrize("spilled", [True, False])
def test_a_live_key_in_two_partitions_is_found_and_a_deleted_one_is_none(tmp_path: Path, spilled: bool) -> None:
    split = [Record(b"a", b"1", 0, 0, 7), Record(b"a", b"2", 1, 0, 7)]
    for name in ("split", "healed"):
        (tmp_path / name).mkdir()
    with pytest.raises(SplitKey):
        rows_after([([record], spilled) for record in split], tmp_path / "split")
    healed = [*split, Record(b"a", None, 0, 1, 7)]
    assert rows_after([([record], spilled) for record in healed], tmp_path / "healed") == [split[1]]


def many(numbers: range, size: int = 100) -> list[Record]:
    return [Record(b"%08d" % number, b"%0*d" % (size, 7), 0, number, 7) for number in numbers]


def test_rows_of_many_blocks_and_runs_are_found_by_their_range(tmp_path: Path) -> None:
    """Runs whose keys interleave, and a second file of another worker."""
    write_runs([(many(range(start, 9000, 3)), True) for start in (0, 1)], tmp_path / "one")
    write_runs([(many(range(2, 9000, 3)), True)], tmp_path / "two")
    blocks = [block for name in ("one", "two") for run in read_index(tmp_path / name) for block in run]
    assert len(blocks) > 30
    files = files_of_ranges(blocks, most_bytes=50_000, workers=3)
    ranges = [each for file in files for each in file]
    assert (ranges[0].low, ranges[-1].high) == (b"", None)
    assert [each.high for each in ranges[:-1]] == [each.low for each in ranges[1:]]
    assert len(ranges) > 15
    assert len(files) == 3
    rows, done = merge(tmp_path, [tmp_path / "one", tmp_path / "two"], ranges, "bytes")
    assert [unpack_row(key, row) for key, row in rows] == many(range(9000))
    assert done == MergedRows(dropped={}, poison={})


def test_a_range_without_rows_makes_no_file(tmp_path: Path) -> None:
    write_runs([(many(range(3)), True)], tmp_path / "runs")
    assert merge(tmp_path, [tmp_path / "runs"], [KeyRange(b"z", None)]) == ([], MergedRows(dropped={}, poison={}))
    assert files_of_ranges([], most_bytes=1, workers=2) == [[KeyRange(b"", None)]]


@pytest.mark.parametrize("file", ["runs", "runs-index"])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_a_byte_of_a_run_that_changed_is_an_error_and_never_another_row(tmp_path: Path, file: str, at: float) -> None:
    write_runs([(many(range(600)), True)], tmp_path / "runs")
    raw = bytearray((tmp_path / file).read_bytes())
    raw[int(at * (len(raw) - 1))] ^= 1
    (tmp_path / file).write_bytes(raw)
    with pytest.raises(LastwordError, match=f"{file}, a file of the build, is not as it was written: check the disk"):
        merge(tmp_path, [tmp_path / "runs"], EVERYTHING)


def test_a_run_that_lost_its_end_is_an_error(tmp_path: Path) -> None:
    write_runs([(many(range(600)), True)], tmp_path / "runs")
    (tmp_path / "runs").write_bytes((tmp_path / "runs").read_bytes()[:-1])
    with pytest.raises(LastwordError, match="is not as it was written"):
        merge(tmp_path, [tmp_path / "runs"], EVERYTHING)


def run_sizes(keys: list[int], *, room: float) -> list[int]:
    """How many rows move to the disk at a time, when batches of ten records with these keys are folded."""
    newest, sizes = NewestPackedRows([0], run_rows=100), list[int]()
    for start in range(0, len(keys), 10):
        records = [Record(b"%08d" % key, b"1", 0, start + at, 7) for at, key in enumerate(keys[start : start + 10])]
        newest.fold(columns_of(0, records))
        if newest.is_run(room):
            sizes.append(len(newest))
            newest.take()
    return sizes


def test_distinct_keys_move_to_the_disk_early_and_repeated_ones_only_when_the_memory_is_full() -> None:
    assert run_sizes(list(range(1000)), room=MB) == [100] * 10
    # Each key ten times, in a mixed order: waiting leaves a tenth of the rows.
    mixed = random.Random(8)
    assert run_sizes([mixed.randrange(150) for _ in range(1500)], room=MB) == []
    # And one after the other: in the second round, the keys of the first run come back.
    assert run_sizes([number % 150 for number in range(1500)], room=MB) == [100]
    full = run_sizes([number % 150 for number in range(1500)], room=20_000)
    assert full
    assert all(size < 150 for size in full)


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
    assert not newest.is_run(8 * MB)
    fold_in(range(10_000), 2000)
    assert newest.is_run(8 * MB)
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


def test_the_room_for_rows_is_a_part_of_the_memory_however_small() -> None:
    assert room_within(0) == 0
    assert room_within(64 * MB) == 8 * MB
    assert room_within(512 * MB) < 512 * MB * 2 // 3


def test_partitions_are_spread_by_what_there_is_to_read() -> None:
    assert spread({0: 10, 1: 10, 2: 10, 3: 10}, 2) == [[0, 2], [1, 3]]
    assert spread({0: 1, 1: 100, 2: 40, 3: 60}, 2) == [[1, 0], [3, 2]]
    assert spread({5: 3}, 8) == [[5]]
    assert spread({}, 8) == []
