"""The partition of a key: Kafka's own hash, so that a reader knows a key's partition without asking a writer.

The hash must equal the one of Java's default partitioner bit for bit. A key that two writers put into two
partitions has two newest records, and no compaction ever brings them together.
"""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_WORD = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash of a key, signed as Java has it."""
    length = len(key)
    hashed = _SEED ^ length
    for word in struct.unpack_from(f"<{length >> 2}I", key):
        mixed = word * _MULTIPLIER & _WORD
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _WORD
        hashed = (hashed * _MULTIPLIER & _WORD) ^ mixed
    if left_over := length & 3:
        hashed = (hashed ^ int.from_bytes(key[-left_over:], "little")) * _MULTIPLIER & _WORD
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _WORD
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic with `partitions` partitions."""
    # Java drops the sign bit instead of taking the absolute value: the two differ for every negative hash.
    return (murmur2(key) & 0x7FFFFFFF) % partitions
