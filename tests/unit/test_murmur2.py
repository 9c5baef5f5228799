"""The hash agrees with Kafka's Java code on the vectors of Kafka's own UtilsTest."""

from __future__ import annotations

import pytest

from lastword.core.key_partition import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_the_one_kafka_tests_for(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed


def test_a_negative_hash_loses_its_sign_bit_and_is_not_made_absolute() -> None:
    # -973932308 without its sign bit is 1173551340, which is 0 of 3; its absolute value would be 2 of 3.
    assert 973932308 % 3 == 2
    assert partition_of(b"21", 3) == 0


def test_the_empty_key_has_a_place_too() -> None:
    assert partition_of(b"", 3) in range(3)


def test_with_one_partition_every_key_is_in_it() -> None:
    assert {partition_of(str(number).encode(), 1) for number in range(100)} == {0}
