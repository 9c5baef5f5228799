"""Transactions under one id, and the start of a pipeline's driver, on real Kafka; Spark has no part in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from lastword.core.errors import Fenced, SourceGap, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.kafka.topics.topic_description import list_topics
from lastword.pipeline.plan.plan import Pipeline, Rule, Source
from lastword.pipeline.running.own_topics import make_own_topics
from lastword.pipeline.running.progress import PartitionProgress, newest_progress, progress_record, transactional_id
from lastword.pipeline.running.takeover import take_over
from support.compacted_logs import wait_for_markers


@pytest.fixture
def plan(connection: Connection, topic_name: str) -> Iterator[Pipeline]:
    rule = Rule(name="all", when="true", to=f"{topic_name}-out", value={"n": "n"})
    made = Pipeline(app=topic_name, source=Source(topic=f"{topic_name}-in", schema="n INT"), rules=(rule,), tables=())
    create_topic(connection, made.source.topic, partitions=2, settings={"cleanup.policy": "delete"})
    make_own_topics(connection, made)
    yield made
    for topic in list_topics(connection):
        if topic.name.startswith(topic_name):
            delete_topic(connection, topic.name)


def produce(connection: Connection, plan: Pipeline, count: int) -> None:
    producer = connection.producer()
    for number in range(count):
        producer.produce(plan.source.topic, b"{}", partition=number % 2)
    producer.flush()


def write_progress(connection: Connection, plan: Pipeline, partition: int, progress: PartitionProgress) -> None:
    holder = Transactions(connection, transactional_id(plan.app, partition))
    holder.write([], progress_record(plan.changelog, partition, progress))
    holder.close()


def values(connection: Connection, topic: str) -> list[bytes | None]:
    wait_for_markers(connection, topic)
    return [record.value for batch in read_log(connection, topic) for record in batch]


def test_a_transaction_is_there_as_a_whole_and_tells_where_its_last_record_lies(
    connection: Connection, plan: Pipeline
) -> None:
    writer = Transactions(connection, plan.app)
    topic = plan.source.topic
    first = writer.write([OutgoingRecord(topic, b"1", partition=0)], OutgoingRecord(topic, b"2", partition=0))
    second = writer.write([], OutgoingRecord(topic, b"3", partition=0))
    with pytest.raises(TypeError):
        writer.write([OutgoingRecord(topic, b"4", partition=0)], OutgoingRecord(topic, 5, partition=0))  # type: ignore[arg-type]
    third = writer.write([], OutgoingRecord(topic, b"6", partition=0))
    writer.close()

    # Each end of a transaction has an offset too; what was aborted had not been sent yet.
    assert (first, second, third) == (1, 3, 5)
    assert values(connection, topic) == [b"1", b"2", b"3", b"6"]


def test_who_takes_an_id_ends_its_former_holder(connection: Connection, plan: Pipeline) -> None:
    former = Transactions(connection, plan.app)
    former.write([], OutgoingRecord(plan.source.topic, b"1"))
    holder = Transactions(connection, plan.app)

    with pytest.raises(Fenced, match=f"of {plan.app}: another process has taken this id"):
        former.write([], OutgoingRecord(plan.source.topic, b"2"))
    former.close()
    holder.write([], OutgoingRecord(plan.source.topic, b"3"))
    holder.close()

    assert sorted(filter(None, values(connection, plan.source.topic))) == [b"1", b"3"]


def test_each_takeover_has_the_next_generation_and_goes_on_where_the_last_one_was(
    connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, 10)
    first = take_over(connection, plan, owner="one")
    reached = replace(first.stored[1].progress, next_offset=4, valid=4)
    write_progress(connection, plan, 1, reached)

    second = take_over(connection, plan, owner="two")

    assert (first.generation, dict(first.position)) == (1, {0: 0, 1: 0})
    assert (second.generation, dict(second.position)) == (2, {0: 0, 1: 4})
    assert second.stored[1].progress == replace(reached, generation=2, owner="two")


def test_a_driver_that_was_replaced_is_told_and_takes_no_id_from_its_successor(
    connection: Connection, plan: Pipeline
) -> None:
    older = take_over(connection, plan, owner="one")
    take_over(connection, plan, owner="two")
    holder = Transactions(connection, transactional_id(plan.app, 0))

    with pytest.raises(TakenOver, match="was taken over by two"):
        take_over(connection, plan, owner="one", mine=older.generation)
    holder.write([], OutgoingRecord(plan.source.topic, b"still the holder"))
    holder.close()


def test_a_takeover_that_was_cut_off_is_done_again_by_its_own_driver(connection: Connection, plan: Pipeline) -> None:
    begun = take_over(connection, plan, owner="one")
    # The next one died after its first partition.
    write_progress(connection, plan, 0, replace(begun.stored[0].progress, generation=begun.generation + 1))

    again = take_over(connection, plan, owner="one", mine=begun.generation)

    assert again.generation == begun.generation + 2


def test_a_choice_says_where_a_new_pipeline_begins_and_added_partitions_begin_with_their_first_record(
    connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, 10)
    assert dict(take_over(connection, plan, owner="one", choice="latest").position) == {0: 5, 1: 5}
    alter_topic(connection, plan.source.topic, partitions=3)
    make_own_topics(connection, plan)
    assert dict(take_over(connection, plan, owner="two", choice="latest").position) == {0: 5, 1: 5, 2: 0}


def test_a_source_that_ends_before_what_was_read_is_not_read_again(connection: Connection, plan: Pipeline) -> None:
    produce(connection, plan, 10)
    begun = take_over(connection, plan, owner="one")
    write_progress(connection, plan, 0, replace(begun.stored[0].progress, next_offset=9))

    with pytest.raises(SourceGap, match=r"partition ends at 5, but was read up to 9: records were lost.*--from latest"):
        take_over(connection, plan, owner="two")
    taken = take_over(connection, plan, owner="three", choice="earliest")

    assert dict(taken.position) == {0: 5, 1: 0}
    (line,) = taken.skipped
    assert line.endswith("records were lost: reading continues at offset 5, as chosen")


def test_the_progress_of_a_partition_is_the_last_one_that_was_committed(connection: Connection, plan: Pipeline) -> None:
    taken = take_over(connection, plan, owner="one")
    holder = Transactions(connection, transactional_id(plan.app, 0))
    later = replace(taken.stored[0].progress, next_offset=7)
    record = progress_record(plan.changelog, 0, later)
    offset = holder.write([], record)
    with pytest.raises(TypeError):
        holder.write([record], OutgoingRecord(plan.changelog, 5, partition=0))  # type: ignore[arg-type]
    holder.close()

    for start in (None, taken.stored[0].offset, offset):
        found = newest_progress(connection, plan.changelog, 0, start=start)
        assert found is not None
        assert (found.progress, found.offset) == (later, offset)


def test_a_driver_whose_changelog_has_lost_what_it_reached_does_not_begin_again(
    connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, 10)
    taken = take_over(connection, plan, owner="one")
    before = {partition: stored.progress for partition, stored in taken.stored.items()}
    write_progress(connection, plan, 0, replace(before[0], next_offset=1))
    reached = {**before, 0: replace(before[0], next_offset=2)}

    with pytest.raises(SourceGap, match=r"\[0\] has lost records: its progress is offset 1, but offset 2 was reached"):
        take_over(connection, plan, owner="one", mine=taken.generation, reached=reached)
    delete_topic(connection, plan.changelog)
    make_own_topics(connection, plan)
    with pytest.raises(SourceGap, match=r"has lost records: its progress is gone, but offset \d+ was reached"):
        take_over(connection, plan, owner="one", mine=taken.generation, reached=reached)
