"""The memory of rows before they move to the disk: no shape of a log hides how much it is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lastword.kafka.client.reading import Columns
from lastword.replica.building.newest_rows import NewestPackedRows

KB = 1024
ROOM = 4 * KB * KB
BATCH = 500


def most_held(record: Callable[[int], tuple[bytes, bytes | None]], *, partitions: int = 1) -> int:
    """The most bytes of keys and rows that are in memory after a batch, while the records of a log are folded."""
    newest, most, held = NewestPackedRows(range(partitions)), 0, dict[bytes, int]()
    for start in range(0, 200 * BATCH, BATCH):
        keys, values = zip(*map(record, range(start, start + BATCH)), strict=True)
        newest.fold(Columns(start // BATCH % partitions, [*keys], [*values], [*range(BATCH)], [7] * BATCH, 0))
        held.update({key: len(key) + len(value or b"") for key, value in zip(keys, values, strict=True)})
        if newest.is_run(ROOM):
            newest.take()
            held.clear()
        most = max(most, sum(held.values()))
    return most


@pytest.mark.parametrize("period", [2, 16, 17, 400])
def test_large_values_at_regular_places_are_weighed(period: int) -> None:
    assert most_held(lambda n: (b"%08d" % n, b"x" * (4 * KB if n % period == 1 else 10))) <= ROOM


def test_rows_that_grow_without_new_keys_are_weighed_and_not_forgotten_when_small_records_follow() -> None:
    def record(number: int) -> tuple[bytes, bytes]:
        # Ten thousand small rows; then some of them grow, one in fifty records; and then only one key is written.
        if number < 10_000:
            return b"%08d" % number, b"x"
        if number % 50 == 0 and number % 5000 < 2500:
            return b"%08d" % (number // 50), b"x" * 8 * KB
        return b"%08d" % (number % 10), b"x"

    assert most_held(record) <= ROOM * 5 / 4


def test_deletes_and_mixed_sizes_are_weighed() -> None:
    chance = random.Random(3)

    def record(_: int) -> tuple[bytes, bytes | None]:
        key = b"%06d" % chance.randrange(20_000)
        return key, None if chance.random() < 0.2 else b"x" * chance.choice([0, 10, 100, 3000])

    assert 0.3 * ROOM < most_held(record) <= ROOM * 5 / 4


def test_a_run_of_many_partitions_leaves_no_more_marks_than_another() -> None:
    newest = NewestPackedRows(range(1000))
    for partition in range(1000):
        keys: list[bytes | None] = [b"%d-%d" % (partition, n) for n in range(3)]
        newest.fold(Columns(partition, keys, [b"1"] * 3, [0, 1, 2], [7] * 3, 0))
    newest.take()
    assert 60 <= len(newest._marked) <= 70
