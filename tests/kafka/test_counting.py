"""What is counted of a real topic, and what is told when a count is not made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from lastword.kafka.connection import Connection
from lastword.kafka.topic_description import TopicDescription, describe_topic
from lastword.kafka.topics import create_topic, delete_topic
from lastword.serve import counting as counting_module
from lastword.serve.counting import BEING_COUNTED, Counting
from support.compacted_logs import write
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> TopicDescription:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1")])
    return describe_topic(connection, topic_name)


@pytest.fixture
def counting(connection: Connection) -> Iterator[Counting]:
    with closing(Counting(connection)) as made:
        yield made


def of_unknown_size(topic: TopicDescription) -> TopicDescription:
    """The topic as it is seen while its partition has no leader."""
    (partition,) = topic.partitions
    unknown = replace(partition, leader=None, start_offset=None, end_offset=None, bytes_on_disk=None)
    return replace(topic, partitions=(unknown,))


def test_a_topic_that_turns_out_to_be_too_much_is_not_read(
    topic: TopicDescription, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting_module, "MOST_RECORDS", 3)
    seen = of_unknown_size(topic)
    eventually(lambda: counting.of(seen)[1] != BEING_COUNTED)
    counted, why = counting.of(seen)
    assert counted is None
    assert why is not None
    assert why.endswith(f"records to read:  lastword topic describe {topic.name} --scan  counts them")


def test_an_older_count_says_why_there_is_no_newer_one(
    connection: Connection, topic: TopicDescription, counting: Counting
) -> None:
    eventually(lambda: counting.of(topic)[0] is not None)
    assert counting.of(topic)[1] is None
    delete_topic(connection, topic.name)
    counting.again(topic.name)
    eventually(lambda: counting.of(topic)[1] is not None)
    counted, why = counting.of(topic)
    assert counted is not None
    assert counted.scan is not None
    assert (counted.scan.partitions[0].records, why) == (4, "the topic is gone")
