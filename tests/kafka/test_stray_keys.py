"""Keys that another partitioner placed: whoever reads rows is warned, on standard error, with what to do."""

from __future__ import annotations

import json

import pytest

from lastword.core.key_partition import partition_of
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.stray_keys import look_elsewhere
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine

HOME = partition_of(b"stray", 3)
ELSEWHERE = (HOME + 1) % 3


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


def write(connection: Connection, topic: str, *records: tuple[bytes, bytes | None, int]) -> None:
    """As a writer with another partitioner does: (key, value, partition), each later than the one before."""
    producer = connection.producer()
    for number, (key, value, partition) in enumerate(records):
        producer.produce(topic, key=key, value=value, partition=partition, timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0


def test_get_names_the_partition_where_a_key_is_that_is_not_in_its_own(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    write(connection, topic, (b"stray", b"1", ELSEWHERE))
    for words in ((), ("--json",)):
        done = lastword.run("get", topic, "stray", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"lastword: no key 'stray' in {topic}[{HOME}], where Java's partitioner (murmur2) puts it, but it is in "
            f"{topic}[{ELSEWHERE}]: another partitioner wrote it there, or partitions were added; read it with "
            "--all-partitions\n"
        )
    assert lastword("get", topic, "stray", "--all-partitions") == "1\n"


def test_get_is_certain_of_a_key_that_is_nowhere(lastword: CommandLine, connection: Connection, topic: str) -> None:
    write(connection, topic, (b"stray", b"1", ELSEWHERE), (b"stray", None, ELSEWHERE), (b"other", b"1", ELSEWHERE))
    done = lastword.run("get", topic, "stray")
    assert (done.returncode, done.stderr) == (1, f"lastword: no key 'stray' in {topic}\n")


def test_a_look_at_the_other_partitions_ends_in_time_and_says_that_it_is_not_certain(
    connection: Connection, topic: str
) -> None:
    write(connection, topic, *((b"filler", b"1", ELSEWHERE) for _ in range(3)))
    hurried = look_elsewhere(connection, topic, b"stray", within_s=-1)
    assert (hurried.home, hurried.row, hurried.is_certain) == (HOME, None, False)
    assert look_elsewhere(connection, topic, b"stray", within_s=60).is_certain


def test_scan_count_and_dump_warn_of_a_delete_that_another_partitioner_sent_elsewhere(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    write(connection, topic, (b"stray", b"1", HOME), (b"stray", None, ELSEWHERE))
    for words in (("scan", topic), ("scan", topic, "--json"), ("count", topic), ("dump", topic)):
        done = lastword.run(*words)
        assert done.returncode == 0
        (warning,) = done.stderr.splitlines()
        assert warning.startswith(
            "lastword: warning: 1 key (stray) with a row in one partition and a later delete in another; the delete "
            "does not remove the row, so the older value counts: partitions were added, or writers use different "
            "partitioners: let every writer use murmur2"
        )
        assert f"copy the table into a new topic with  lastword dump {topic}  and  lastword load" in warning
    [row] = map(json.loads, lastword("scan", topic, "--json").splitlines())
    assert (row["key"], row["value"], row["partition"]) == ("stray", 1, HOME)


def test_scan_and_get_of_all_partitions_warn_of_two_live_rows(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    write(connection, topic, (b"stray", b"1", HOME), (b"stray", b"2", ELSEWHERE), (b"fine", b"3", HOME))
    for words in (("scan", topic, "--json"), ("get", topic, "stray", "--all-partitions")):
        done = lastword.run(*words)
        assert done.returncode == 0
        assert done.stderr.startswith(
            "lastword: warning: 1 key (stray) with live rows in two partitions; the later row counts: "
        )
    assert done.stdout == "2\n"


def test_a_delete_that_was_followed_by_a_row_elsewhere_is_no_reason_to_warn(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    write(connection, topic, (b"stray", None, HOME), (b"stray", b"1", ELSEWHERE))
    done = lastword.run("scan", topic)
    assert (done.returncode, done.stderr) == (0, "")
