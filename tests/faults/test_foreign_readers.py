"""What readers that are not ours see after a compaction on demand: the topic's own records, and nothing of lastword's.

Kafka's console consumer and kafka-python read uncommitted data unless told otherwise, so an aborted record is one more
record for them, and a null value where they expect none.
"""

from __future__ import annotations

import pytest

from lastword.kafka.broker.broker_process import Jvm
from lastword.kafka.client.connection import Connection
from support.command_line import CommandLine
from support.compacted_logs import THIRTEEN_PROFILES, aborted_transaction, committed, make_topic, write
from support.foreign_clients import ForeignRecord, kafka_tools, seen_by_console_consumer, seen_by_kafka_python

# Other clients are told an address alone.
pytestmark = pytest.mark.open

TEN_PROFILES = sorted({"user-1": "v3", "user-2": "v2", **{f"user-{n}": "v1" for n in range(3, 11)}}.items())


@pytest.fixture(scope="session")
def jvm() -> Jvm:
    return kafka_tools()


def end_each_partition(connection: Connection, topic: str) -> int:
    """Appends one last record to each partition, so that a reader knows when it has seen all; how many these are."""
    producer = connection.producer()
    partitions = list(connection.topic(topic).partitions)
    for partition in partitions:
        producer.produce(topic, key="the end", value="the end", partition=partition)
    assert producer.flush(30) == 0
    return len(partitions)


def before_the_end(records: list[ForeignRecord], ends: int) -> list[tuple[str, str | None]]:
    """The records but the last ones, each of which was seen."""
    assert [record.key for record in records].count("the end") == ends
    return sorted((record.key, record.value) for record in records if record.key != "the end")


@pytest.mark.parametrize("partitions", [1, 3])
def test_after_the_compaction_of_scenario_a_foreign_readers_see_exactly_ten_records(
    jvm: Jvm, connection: Connection, lastword: CommandLine, topic_name: str, partitions: int
) -> None:
    make_topic(connection, topic_name, partitions=partitions)
    write(connection, topic_name, THIRTEEN_PROFILES)

    lastword("topic", "compact", topic_name)

    assert sorted((r.key, r.value) for r in committed(connection, topic_name)) == [
        (key.encode(), value.encode()) for key, value in TEN_PROFILES
    ]
    ends = end_each_partition(connection, topic_name)
    # One more record than there should be would come before the last end, and be seen in its place.
    by_console = seen_by_console_consumer(jvm, connection, topic_name, 10 + ends)
    by_python = seen_by_kafka_python(connection, topic_name, 10 + ends)
    assert before_the_end(by_console, ends) == TEN_PROFILES
    assert before_the_end(by_python, ends) == TEN_PROFILES


def test_the_foreign_readers_of_these_tests_do_see_aborted_records(
    jvm: Jvm, connection: Connection, topic_name: str
) -> None:
    # The negative control: a reader of committed data would find nothing wrong in the test above.
    make_topic(connection, topic_name)
    with aborted_transaction(connection, topic_name, records=1):
        pass

    ends = end_each_partition(connection, topic_name)
    by_console = seen_by_console_consumer(jvm, connection, topic_name, 1 + ends)
    by_python = seen_by_kafka_python(connection, topic_name, 1 + ends)
    assert before_the_end(by_console, ends) == before_the_end(by_python, ends) == [("never", "committed")]
