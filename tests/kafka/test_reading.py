"""Reads of the raw log and of the table, checked against the reference fold on generated logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from hypothesis import HealthCheck, given, settings

from lastword.core.errors import BadInput, NotFound
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import FoldedTable, fold_topic, follow, log_bounds, read_log
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from support.generated_logs import PARTITIONS, Act, Put, fresh_topic, leave_open, logs, write_log
from support.waiting import eventually


def check_against_the_law(
    connection: Connection,
    topic: str,
    committed: list[Record],
    *,
    read_log: Callable[[Connection, str], Iterable[list[Record]]] = read_log,
    fold_topic: Callable[[Connection, str], FoldedTable] = fold_topic,
) -> None:
    """The raw log is what was committed, and the table is its fold, at the same position."""
    seen = [record for batch in read_log(connection, topic) for record in batch]
    assert sorted(seen, key=lambda r: (r.partition, r.offset)) == sorted(
        committed, key=lambda r: (r.partition, r.offset)
    )
    folded = fold_topic(connection, topic)
    assert folded.rows == fold(committed)
    for record in committed:
        assert record.offset < folded.position[record.partition]


@given(log=logs)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_table_is_the_fold_of_what_was_committed(connection: Connection, log: list[Act]) -> None:
    with fresh_topic(connection) as topic:
        check_against_the_law(connection, topic, write_log(connection, topic, log))


def without_tombstones(connection: Connection, topic: str) -> list[list[Record]]:
    return [[record for record in batch if not record.is_tombstone] for batch in read_log(connection, topic)]


def folded_without_tombstones(connection: Connection, topic: str) -> FoldedTable:
    live = [record for batch in without_tombstones(connection, topic) for record in batch]
    return replace(fold_topic(connection, topic), rows=fold(live))


@pytest.mark.parametrize(
    "broken",
    [{"read_log": without_tombstones}, {"fold_topic": folded_without_tombstones}],
    ids=["in the log", "in the fold"],
)
def test_the_check_objects_when_tombstones_are_dropped(
    connection: Connection, topic_name: str, broken: dict[str, Callable[..., Any]]
) -> None:
    create_topic(connection, topic_name, partitions=PARTITIONS)
    log = [
        Act(puts=(Put(key=b"a", value=b"1", partition=0),), ending="plain"),
        Act(puts=(Put(key=b"a", value=None, partition=0),), ending="plain"),
    ]
    committed = write_log(connection, topic_name, log)
    check_against_the_law(connection, topic_name, committed)
    with pytest.raises(AssertionError):
        check_against_the_law(connection, topic_name, committed, **broken)


def test_a_read_ends_before_an_open_transaction_and_does_not_wait_for_it(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    put = Put(key=b"a", value=b"1", partition=0)
    committed = write_log(connection, topic_name, [Act(puts=(put,), ending="plain")])
    open_one = leave_open(connection, topic_name, [Put(key=b"a", value=b"2", partition=0)])
    write_log(connection, topic_name, [Act(puts=(Put(key=b"b", value=b"3", partition=0),), ending="plain")])
    assert log_bounds(connection, topic_name)[1] == Position({0: 1})
    check_against_the_law(connection, topic_name, committed)
    open_one.abort_transaction(30)


def test_a_log_that_ends_in_an_aborted_transaction_is_read_to_its_end(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    log = [
        Act(puts=(Put(key=b"a", value=b"1", partition=0),), ending="plain"),
        Act(puts=(Put(key=b"a", value=b"2", partition=0),) * 3, ending="abort"),
    ]
    committed = write_log(connection, topic_name, log)
    folded = fold_topic(connection, topic_name)
    # One record, three aborted ones and the marker: the position is past them all.
    assert folded.position == Position({0: 5})
    assert folded.rows == fold(committed)


def test_a_range_of_the_log_is_read_from_start_to_stop(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=2)
    puts = tuple(Put(key=b"k%d" % n, value=b"v", partition=n % 2) for n in range(10))
    write_log(connection, topic_name, [Act(puts=puts, ending="plain")])
    batches = read_log(connection, topic_name, start=Position({0: 3}), stop=Position({0: 5, 1: 2}))
    places = sorted((record.partition, record.offset) for batch in batches for record in batch)
    assert places == [(0, 3), (0, 4), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("start", "complaint"), [("0:7", "not there yet"), ("3:0", "has no partition 3"), ("0:2,9:1", "has no partition 9")]
)
def test_a_position_that_is_not_in_the_log_is_refused(
    connection: Connection, topic_name: str, start: str, complaint: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=0),) * 2, ending="plain")])
    with pytest.raises(BadInput, match=complaint):
        list(read_log(connection, topic_name, start=Position.parse(start)))


def test_a_topic_that_is_not_there_gets_the_nearest_name(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    with pytest.raises(NotFound, match=f"did you mean '{topic_name}'"):
        fold_topic(connection, topic_name + "x")


def test_a_position_before_the_start_of_the_log_is_refused(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "delete"})
    write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=0),) * 5, ending="plain")])
    admin = connection.admin()
    for deleted in admin.delete_records([TopicPartition(topic_name, 0, 3)]).values():
        deleted.result()
    with pytest.raises(BadInput, match="starts at 3"):
        list(read_log(connection, topic_name, start=Position({0: 1})))
    assert [record.offset for batch in read_log(connection, topic_name) for record in batch] == [3, 4]


def test_records_without_a_key_are_counted_and_in_no_table(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "delete"})
    puts = (Put(key=None, value=b"1", partition=0), Put(key=b"a", value=b"2", partition=0))
    write_log(connection, topic_name, [Act(puts=puts, ending="plain")])
    folded = fold_topic(connection, topic_name)
    assert (list(folded.rows), folded.keyless_records) == ([b"a"], 1)


def test_following_takes_partitions_that_are_added_and_ends_when_the_topic_is_deleted(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    following = follow(connection, topic_name, look_again_s=0.2)
    next(following)
    alter_topic(connection, topic_name, partitions=2, move_keys=True)
    write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=1),), ending="plain")])
    seen: list[Record] = []

    def saw_it() -> bool:
        seen.extend(next(following))
        return [record.partition for record in seen] == [1]

    eventually(saw_it)
    delete_topic(connection, topic_name)
    with pytest.raises(NotFound):
        eventually(lambda: next(following) is None)


def test_following_from_a_position_gives_what_came_after_it_and_goes_on(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=0),) * 3, ending="plain")])
    seen: list[int] = []
    following = follow(connection, topic_name, start=Position({0: 1}))

    def has_seen(offsets: list[int]) -> bool:
        seen.extend(record.offset for record in next(following))
        return seen == offsets

    eventually(lambda: has_seen([1, 2]))
    tombstone = Put(key=b"a", value=None, partition=0)
    write_log(connection, topic_name, [Act(puts=(tombstone,), ending="plain")])
    eventually(lambda: has_seen([1, 2, 3]))
    following.close()
