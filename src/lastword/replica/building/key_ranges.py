"""How the keys of all runs are divided: into ranges that fit into the processor's cache, and these into files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lastword.replica.building.sorted_runs import Block

# Rows of a range are sorted and looked up together: more would no longer fit into the processor's cache.
_RANGE_BYTES = 32 * 1024 * 1024
# The memory of a row beside its bytes while a range is merged: the heads of two objects, and places in lists and dicts.
_ROW_BYTES = 250
# Before compression. RocksDB's own files have 64 MiB after it.
_FILE_BYTES = 128 * 1024 * 1024


class KeyRange(NamedTuple):
    """The keys from `low` on and before `high`; None: all that follow."""

    low: bytes
    high: bytes | None


def files_of_ranges(blocks: Sequence[Block], *, most_bytes: int, workers: int) -> list[list[KeyRange]]:
    """Ranges that cover all keys and take about equal memory, in key order, by file; as many files for each worker."""
    in_order = sorted((block.first_key, block.size + block.rows * _ROW_BYTES) for block in blocks)
    total = sum(size for _, size in in_order)
    files = workers * _rounded_up(sum(block.size for block in blocks), workers * _FILE_BYTES)
    count = files * _rounded_up(total, files * max(1, min(_RANGE_BYTES, most_bytes)))
    cuts, size = list[bytes](), 0
    for first_key, block_size in in_order:
        if size * count >= total * (len(cuts) + 1) and first_key > (cuts[-1] if cuts else b""):
            cuts.append(first_key)
        size += block_size
    ranges = [*map(KeyRange, [b"", *cuts], [*cuts, None])]
    # There may be fewer than asked for: a cut is the first key of a block.
    edges = [len(ranges) * file // files for file in range(files + 1)]
    return [ranges[low:high] for low, high in pairwise(edges) if low < high]


def _rounded_up(total: int, unit: int) -> int:
    """How many units hold the total, at least one."""
    return max(1, -(-total // unit))
