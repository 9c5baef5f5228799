"""What a feed hears: records, holes among the offsets, and ends."""

from __future__ import annotations

import time
from typing import Literal

from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed, FeedBatch, LeaderEpoch
from lastword.kafka.topics.topic_changes import create_topic
from support.compacted_logs import aborted_transaction
from support.replicas import write_rows


def heard_to_the_end(connection: Connection, topic: str, start: int = 0) -> FeedBatch:
    """Everything up to the first end of the only partition, as one."""
    whole = FeedBatch()
    with Feed(connection, topic) as feed:
        feed.add({0: start}, {})
        give_up_at = time.monotonic() + 30
        while not whole.at_end:
            assert time.monotonic() < give_up_at
            heard = feed.poll(0.5)
            whole.records += heard.records
            whole.reached |= heard.reached
            whole.holes |= heard.holes
            whole.at_end |= heard.at_end
            whole.leader_epochs |= heard.leader_epochs
    return whole


def write(connection: Connection, topic: str, *steps: Literal["record", "aborted"]) -> None:
    """An aborted record takes two offsets: its own and its marker's."""
    for step in steps:
        if step == "record":
            write_rows(connection, topic, [(0, "a", "1")])
        else:
            with aborted_transaction(connection, topic, records=1):
                pass


def test_where_every_offset_is_there_no_hole_is_seen(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    empty = heard_to_the_end(connection, topic_name)
    assert (empty.records, empty.reached, empty.holes, empty.leader_epochs) == ([], {}, set(), {})
    write(connection, topic_name, "record", "record")
    heard = heard_to_the_end(connection, topic_name)
    assert (heard.reached, heard.holes, heard.leader_epochs) == ({0: 2}, set(), {0: LeaderEpoch(0, 2)})


def test_offsets_that_are_missing_between_two_records_are_a_hole(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, "record", "aborted", "record")
    heard = heard_to_the_end(connection, topic_name)
    assert [record.offset for record in heard.records] == [0, 3]
    assert (heard.reached, heard.holes) == ({0: 4}, {0})
    # Also where they are the first after the position, and not where the position is past them.
    assert heard_to_the_end(connection, topic_name, start=1).holes == {0}
    assert heard_to_the_end(connection, topic_name, start=3).holes == set()


def test_offsets_that_are_missing_at_the_end_are_a_hole_that_the_position_passes(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, "record", "record", "aborted")
    heard = heard_to_the_end(connection, topic_name)
    # The epoch is that of the last record: what those after it have is not known.
    assert (heard.reached, heard.holes, heard.leader_epochs) == ({0: 4}, {0}, {0: LeaderEpoch(0, 2)})
