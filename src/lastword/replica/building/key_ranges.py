"""How the keys of all runs are divided: into ranges that fit into the processor's cache, and these into files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lastword.replica.building.sorted_runs import Block

# Rows of a range are sorted and looked up together: more would no longer fit into the processor's cache.
_RANGE_BYTES = 16 * 1024 * 1024
# Before compression. RocksDB's own files have 64 MiB after it.
_FILE_BYTES = 128 * 1024 * 1024


class KeyRange(NamedTuple):
    """The keys from `low` on and before `high`; None: all that follow."""

    low: bytes
    high: bytes | None


def files_of_ranges(blocks: Iterable[Block], *, most_bytes: int, workers: int) -> list[list[KeyRange]]:
    """Ranges of about equal size that cover all keys, in key order, by file; as many files for each worker."""
    in_order = sorted((block.first_key, block.size) for block in blocks)
    total = sum(size for _, size in in_order)
    files = workers * _rounded_up(total, workers * _FILE_BYTES)
    in_each = _rounded_up(total, files * max(1, min(_RANGE_BYTES, most_bytes)))
    cuts, size = list[bytes](), 0
    for first_key, block_size in in_order:
        if size * files * in_each >= total * (len(cuts) + 1) and first_key > (cuts[-1] if cuts else b""):
            cuts.append(first_key)
        size += block_size
    ranges = [*map(KeyRange, [b"", *cuts], [*cuts, None])]
    return [ranges[start : start + in_each] for start in range(0, len(ranges), in_each)]


def _rounded_up(total: int, unit: int) -> int:
    """How many units hold the total, at least one."""
    return max(1, -(-total // unit))
