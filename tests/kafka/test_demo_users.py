"""`lastword demo users`: generated users in a real topic, at a pace, until they are told to end."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import describe_topic
from lastword.teams.users.generated_users import GeneratedUser, users
from lastword.teams.users.user_topic import next_number
from support.command_line import CommandLine
from support.topic_contents import records_of
from support.waiting import eventually


@pytest.fixture
def new_users(connection: Connection) -> Iterator[str]:
    yield "new_users"
    delete_topic(connection, "new_users")


def written(connection: Connection, topic: str) -> dict[str, GeneratedUser]:
    """The users of the topic by their keys; no key may be there twice."""
    records = records_of(connection, topic)
    found = {(r.key or b"").decode(): msgspec.json.decode(r.value or b"", type=GeneratedUser) for r in records}
    assert len(found) == len(records)
    return found


def test_scenario_c1_users_are_written_under_their_emails_to_a_topic_made_for_them(
    lastword: CommandLine, connection: Connection, new_users: str
) -> None:
    said = lastword("demo", "users", "--count", "1000", "--seed", "3")
    assert re.fullmatch(r"1000 users written to new_users \(0 to 999 of seed 3\), [\d,]+ a second\n", said)
    assert written(connection, new_users) == {user.email: user for user in islice(users(seed=3), 1000)}
    made = describe_topic(connection, new_users)
    assert len(made.partitions) == 5
    assert made.settings["cleanup.policy"].value == "delete"
    assert made.settings["retention.ms"].value == "3600000"


def test_a_second_run_goes_on_after_the_newest_user_and_leaves_the_topic_as_it_is(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=2)
    lastword("demo", "users", "--count", "500", "--topic", topic_name)
    assert "(500 to 799 of seed 0)" in lastword("demo", "users", "--count", "300", "--topic", topic_name)
    assert written(connection, topic_name) == {user.email: user for user in islice(users(seed=0), 800)}
    assert len(log_bounds(connection, topic_name)[1]) == 2


def test_a_run_goes_on_after_the_newest_user_also_where_others_before_it_were_lost(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=2)
    with Writer(connection, topic_name) as writer:
        writer.write(next(users(seed=0, start=41)).email.encode(), b"{}")
        writer.write(b"not one of ours", b"{}")
    assert next_number(connection, topic_name) == 42


def test_a_run_counts_what_is_in_the_topic_where_no_key_tells_a_number(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=2)
    assert next_number(connection, topic_name) == 0
    with Writer(connection, topic_name) as writer:
        for key in (b"a", b"b", b"\xff"):
            writer.write(key, None)
    assert next_number(connection, topic_name) == 3


def test_users_come_at_the_rate_that_was_asked_for_in_small_portions(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    lastword("demo", "users", "--rate", "200", "--count", "600", "--topic", topic_name)
    times = sorted(record.timestamp for record in records_of(connection, topic_name))
    # 600 at 200 a second are 3 s from the first to the last; on a busy machine the first may be late, and the rest not.
    assert times[-1] - times[0] >= 2000
    assert len(set(times)) > 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("rate", [["--rate", "300"], []])
def test_a_signal_ends_it_in_order_and_everything_that_was_written_is_counted(
    lastword: CommandLine, connection: Connection, topic_name: str, number: signal.Signals, rate: list[str]
) -> None:
    pipe = subprocess.PIPE
    create_topic(connection, topic_name, partitions=5)
    with lastword.start("demo", "users", *rate, "--topic", topic_name, stdout=pipe, stderr=pipe) as process:
        eventually(lambda: sum(log_bounds(connection, topic_name)[1].values()) > 100)
        process.send_signal(number)
        said, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, "")
    in_topic = sum(log_bounds(connection, topic_name)[1].values())
    assert said.startswith(f"{in_topic} users written to {topic_name} (0 to {in_topic - 1} of seed 0), ")


def test_users_that_the_topic_refuses_end_it_and_the_line_says_how_many_were_written(
    lastword: CommandLine, topic_name: str
) -> None:
    lastword("topic", "create", topic_name, "--set", "max.message.bytes=200")
    done = lastword.run("demo", "users", "--count", "100", "--topic", topic_name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "raise max.message.bytes of the topic" in done.stderr
    assert f"; 0 users were written to {topic_name}: the next start continues after them\n" in done.stderr


def test_without_a_cluster_it_says_how_to_start_one(alone: CommandLine) -> None:
    done = alone.run("demo", "users", "--count", "1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no local cluster is running: start one with  lastword broker start" in done.stderr


def test_no_users_at_all_a_second_is_refused(lastword: CommandLine, topic_name: str) -> None:
    done = lastword.run("demo", "users", "--rate", "0", "--topic", topic_name)
    assert done.returncode == 2
    assert "a rate of 0 users a second writes nothing: give at least 1" in done.stderr
