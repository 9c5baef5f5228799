"""Where a streaming query's sources have come to, as positions of topics."""

from __future__ import annotations

from lastword.core.position import Position
from lastword.spark.progress import end_positions


def test_the_end_offsets_of_a_kafka_source_are_positions() -> None:
    assert end_positions(['{"users":{"0":5,"1":7},"teams":{"0":1}}']) == {
        "users": Position({0: 5, 1: 7}),
        "teams": Position({0: 1}),
    }


def test_of_two_sources_with_one_topic_the_earlier_counts() -> None:
    assert end_positions(['{"users":{"0":5,"1":7}}', '{"users":{"0":6,"1":3}}']) == {"users": Position({0: 5, 1: 3})}


def test_sources_without_partitions_are_passed_over() -> None:
    assert end_positions(["12", '{"logOffset":0}', None, "", '"text"', '{"users":{"0":5}}']) == {
        "users": Position({0: 5})
    }
