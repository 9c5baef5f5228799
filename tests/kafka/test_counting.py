"""What is counted of a real topic, and what is told when a count is not made."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from lastword.kafka.client.bounded_read import Progress
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import TopicDescription, describe_topic
from lastword.kafka.topics.topic_scan import TopicScan, scan_topic
from lastword.serve.cluster.topic_counts import BEING_COUNTED, Counting
from support.compacted_logs import write
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> TopicDescription:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1")])
    return describe_topic(connection, topic_name)


def of_unknown_size(topic: TopicDescription) -> TopicDescription:
    """The topic as it is seen while its partition has no leader."""
    (partition,) = topic.partitions
    unknown = replace(partition, leader=None, start_offset=None, end_offset=None, bytes_on_disk=None)
    return replace(topic, partitions=(unknown,))


def test_a_topic_that_turns_out_to_be_too_much_is_not_read(connection: Connection, topic: TopicDescription) -> None:
    seen = of_unknown_size(topic)
    with closing(Counting(connection, most_records=3)) as counting:
        eventually(lambda: counting.of(seen)[1] != BEING_COUNTED)
        counted, why = counting.of(seen)
    assert counted is None
    assert why == f"more than 3 records to read:  lastword topic describe {topic.name} --scan  counts them"


def test_an_older_count_says_why_there_is_no_newer_one(connection: Connection, topic: TopicDescription) -> None:
    with closing(Counting(connection)) as counting:
        eventually(lambda: counting.of(topic)[0] is not None)
        assert counting.of(topic)[1] is None
        delete_topic(connection, topic.name)
        counting.again(topic.name)
        eventually(lambda: counting.of(topic)[1] is not None)
        counted, why = counting.of(topic)
    assert counted is not None
    assert counted.scan is not None
    assert (counted.scan.partitions[0].records, why) == (4, "the topic is gone")


def test_what_changes_while_it_is_counted_is_counted_again(connection: Connection, topic: TopicDescription) -> None:
    counts = list[TopicScan]()

    def changed_at_its_end(connection: Connection, name: str, progress: Progress) -> TopicScan:
        counts.append(scan_topic(connection, name, progress))
        if len(counts) == 1:
            write(connection, name, [("d", "1")])
            counting.again(name)
        return counts[-1]

    def records() -> int | None:
        counting.of(topic)
        scan = counting.known(topic.name)
        return None if scan is None else scan.partitions[0].records

    with closing(Counting(connection, scan=changed_at_its_end)) as counting:
        # Sooner than the half minute after which one that has changed is counted anyway.
        eventually(lambda: records() == 5, within_s=15)
    assert len(counts) == 2


def test_a_count_that_hangs_does_not_hold_up_a_stop(topic: TopicDescription, connection: Connection) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def hanging(*_: object) -> TopicScan:
        hangs.set()
        goes_on.wait(60)
        return TopicScan(partitions=())

    counting = Counting(connection, scan=hanging, stop_s=0.2)
    counting.of(topic)
    assert hangs.wait(120)
    counting.close()
    (thread,) = [each for each in threading.enumerate() if each.name == "counting"]
    # Nor the end of the process.
    assert (thread.is_alive(), thread.daemon) == (True, True)
    goes_on.set()
    thread.join(120)
    assert not thread.is_alive()
