"""Which topics a server counts: those that it can read whole."""

from __future__ import annotations

from contextlib import closing

import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_description import PartitionDescription, TopicDescription
from lastword.serve.cluster.topic_counts import Counting, too_much_to_read


def topic(*, end: int | None, size: int | None) -> TopicDescription:
    partition = PartitionDescription(
        partition=0,
        leader=1,
        replicas=(1,),
        in_sync=(1,),
        start_offset=100,
        end_offset=end,
        stable_offset=end,
        bytes_on_disk=size,
    )
    return TopicDescription(name="t", topic_id="id", settings={}, partitions=(partition,), no_sizes_because=None)


@pytest.mark.parametrize(
    ("end", "size", "why"),
    [
        (2_000_100, 5, None),
        (2_000_101, 5, "more than 2,000,000 records"),
        (200, 2**30, None),
        (200, 2**30 + 1, "more than 1,024 MiB"),
        (None, None, None),
    ],
)
def test_a_topic_that_is_too_much_to_read_is_told_so(end: int | None, size: int | None, why: str | None) -> None:
    assert too_much_to_read(topic(end=end, size=size)) == why


def test_a_topic_that_is_too_much_to_read_is_not_read() -> None:
    # Nobody answers there, so it could only fail.
    with closing(Counting(Connection(bootstrap_servers="127.0.0.1:1"))) as counting:
        counted, why = counting.of(topic(end=3_000_000, size=5))
    assert counted is None
    assert why == "more than 2,000,000 records to read:  lastword topic describe t --scan  counts them"
