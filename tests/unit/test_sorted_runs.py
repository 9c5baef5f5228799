"""Runs on the disk and ranges of keys: how much of them is in memory at a time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lastword.replica.building.key_ranges import files_of_ranges
from lastword.replica.building.sorted_runs import Block, RunsReader, RunsWriter, read_index

KB = 1024


def written(file: Path, *runs: dict[bytes, bytes]) -> list[Block]:
    writer = RunsWriter(file)
    for run in runs:
        writer.add(run)
    writer.close()
    return [block for run in read_index(file) for block in run]


def test_a_block_is_small_wherever_the_large_rows_of_a_run_are(tmp_path: Path) -> None:
    sizes = [100] * 5000
    # Neighbours, and others that are alone.
    sizes[700:900] = [40 * KB] * 200
    for at in random.Random(4).sample(range(1000, 5000), 50):
        sizes[at] = 200 * KB
    rows = {b"%08d" % number: b"x" * size for number, size in enumerate(sizes)}
    blocks = written(tmp_path / "runs", rows)
    assert max(block.size for block in blocks if block.rows > 1) <= 66 * KB
    assert max(block.rows for block in blocks) == 256
    with RunsReader(tmp_path / "runs") as reader:
        found = [*reader.pieces(b"", None)]
        assert {key: row for piece in found for key, row in zip(*piece, strict=True)} == rows
        (piece,) = reader.pieces(b"%08d" % 750, b"%08d" % 751)
        assert piece == ([b"%08d" % 750], [b"x" * 40 * KB])


def test_ranges_of_tiny_rows_hold_fewer_bytes_because_each_row_takes_memory_of_its_own() -> None:
    def rows_in_a_range(size: int) -> float:
        blocks = [Block(b"%08d" % n, n * 256 * size, 256 * size, 256, 0) for n in range(4000)]
        (ranges,) = files_of_ranges(blocks, most_bytes=8 * KB * KB, workers=1)
        return 4000 * 256 / len(ranges)

    assert rows_in_a_range(20) <= 8 * KB * KB / 250
    assert rows_in_a_range(100) == pytest.approx(8 * KB * KB / 350, rel=0.1)


@pytest.mark.parametrize("first_keys", [[b""] * 9, [b"a"] * 9, [b"", b"a"] * 5, [b"a", b"b", b"b", b"b", b"c"]])
def test_runs_that_begin_with_the_same_keys_are_divided_into_ranges_that_follow_each_other(
    first_keys: list[bytes],
) -> None:
    # The first block is larger than all others together.
    blocks = [Block(key, 0, KB * KB if n == 0 else KB, 1, 0) for n, key in enumerate(first_keys)]
    for most_bytes in (1, 10 * KB, KB * KB * KB):
        for workers in (1, 3):
            files = files_of_ranges(blocks, most_bytes=most_bytes, workers=workers)
            ranges = [each for file in files for each in file]
            assert [each.low for each in ranges] == sorted({b"", *(each.low for each in ranges)})
            assert [each.high for each in ranges] == [*(each.low for each in ranges[1:]), None]
            assert {each.low for each in ranges} <= {b"", *first_keys}


def test_a_range_has_the_keys_from_its_low_one_on_and_before_its_high_one_wherever_blocks_begin_and_end(
    tmp_path: Path,
) -> None:
    keys = [b"%04d" % number for number in range(0, 1200, 2)]
    assert [block.rows for block in written(tmp_path / "runs", dict.fromkeys(keys, b"x" * 30))] == [256, 256, 88]
    # The first and the last key of each block, their neighbours, and keys that are not there.
    bounds = [b"", *keys[:2], *keys[254:258], b"0511", b"0513", *keys[510:514], *keys[-2:], b"9"]
    with RunsReader(tmp_path / "runs") as reader:
        for low in bounds:
            for high in (*bounds, None):
                found = [key for piece, _ in reader.pieces(low, high) for key in piece]
                assert found == [key for key in keys if low <= key and (high is None or key < high)]


def test_files_and_ranges_stay_small_however_much_memory_there_is() -> None:
    blocks = [Block(b"%08d" % n, n * 64 * KB, 64 * KB, 60, 0) for n in range(16 * 1024)]
    files = files_of_ranges(blocks, most_bytes=10**12, workers=2)
    assert len(files) == 8
    assert {len(ranges) for ranges in files} == {5}
