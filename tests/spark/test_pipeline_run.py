"""A pipeline on real Spark and Kafka: what it has written is what its source says, whatever happens in between."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput, SourceGap, TakenOver
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.kafka.topics.topic_description import list_topics
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.batch_frames import BatchSteps
from lastword.pipeline.running.commit_task import CommitTask
from lastword.pipeline.running.driver import PipelineRun
from lastword.pipeline.running.source import BatchLimits, SourceTask
from support import faulty_tasks
from support.faulty_tasks import BreaksOff, IsKilled, LosesItsReport, RunsTwice
from support.pipelines import (
    RunningPipeline,
    make_topics,
    records,
    recounted,
    running,
    small_pipeline,
    some_user,
    written,
)
from support.waiting import eventually

# Workers do not have the tests.
cloudpickle.register_pickle_by_value(faulty_tasks)  # type: ignore[no-untyped-call]

BAD = [b"", b"{", b"null", b"[1]", b'"text"', b'{"name": "Ada"}', b'{"name": null, "credit": 1}', b"\xff\xfe", None]


@pytest.fixture
def plan(connection: Connection, topic_name: str) -> Iterator[Pipeline]:
    made = small_pipeline(topic_name)
    make_topics(connection, made)
    yield made
    for topic in list_topics(connection):
        if topic.name.startswith(topic_name):
            delete_topic(connection, topic.name)


def produce(connection: Connection, plan: Pipeline, values: list[bytes | None]) -> None:
    producer = connection.producer()
    for number, value in enumerate(values):
        producer.produce(plan.source.topic, value, str(number).encode())
    producer.flush()


def settled(connection: Connection, plan: Pipeline) -> bool:
    return written(connection, plan) == recounted(connection, plan)


def expire(connection: Connection, topic: str) -> None:
    """As retention does it: the log's start moves to its end."""
    _, last = log_bounds(connection, topic)
    admin = connection.admin()
    asked = admin.delete_records([TopicPartition(topic, partition, end) for partition, end in last.items()])
    for future in asked.values():
        future.result()


def seen(connection: Connection, plan: Pipeline) -> int:
    rows = written(connection, plan).tables[plan.tables[0].topic]
    return int(rows["ada"]["seen"]) if rows else 0


def status(connection: Connection, plan: Pipeline) -> dict[str, Any]:
    found = records(connection, plan.status)
    return dict(json.loads(found[-1].value or b"{}")) if found else {}


def committed(connection: Connection, group: str, topic: str) -> Position:
    consumer = connection.consumer(group_id=group)
    try:
        places = consumer.committed([TopicPartition(topic, p) for p in range(3)], timeout=10)
    finally:
        consumer.close()
    return Position({place.partition: place.offset for place in places if place.offset >= 0})


@pytest.mark.quick
def test_matches_rejects_and_tables_are_those_of_a_recount_and_go_on_after_a_stop(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(300)), *BAD])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
        produce(connection, plan, [*map(some_user, range(300, 400))])
        eventually(lambda: settled(connection, plan), within_s=60)
    produce(connection, plan, [*BAD, *map(some_user, range(400, 500))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)

    assert len(recounted(connection, plan).matches) > 200
    assert len(recounted(connection, plan).rejects) == 2 * len(BAD)


def test_work_that_several_tasks_shared_is_in_every_later_status(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(2_500))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
        # A small batch, which is one task. A status that is written now tells of it alone.
        produce(connection, plan, [some_user(2_500)])
        eventually(lambda: settled(connection, plan), within_s=60)
        eventually(lambda: status(connection, plan).get("batch", {}).get("tasks") == 1, within_s=60)
        assert status(connection, plan)["most_tasks"] == 3
    with running(spark, plan):
        eventually(lambda: status(connection, plan)["generation"] == 2, within_s=60)
        assert status(connection, plan)["most_tasks"] == 3


def test_many_records_are_a_task_for_each_partition_and_batches_are_bounded(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(300)), *BAD])
    with running(spark, plan, limits=BatchLimits(partition_records=40, one_task_records=1)):
        eventually(lambda: settled(connection, plan), within_s=60)
        # One record has a share, and the other two partitions have none.
        for number in range(300, 303):
            produce(connection, plan, [some_user(number)])
            eventually(lambda: settled(connection, plan), within_s=60)

    assert status(connection, plan)["generation"] == 1


def test_a_source_whose_records_expired_unread_is_an_error_with_a_choice(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(50))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
    before = written(connection, plan).tables
    produce(connection, plan, [*map(some_user, range(50, 100))])
    expire(connection, plan.source.topic)
    produce(connection, plan, [b'{"name": "Ada", "credit": 1}'])

    with pytest.raises(SourceGap, match=r"expired before they were read.*--from earliest"):
        PipelineRun(spark, plan).run()
    with running(spark, plan, choice="earliest"):
        eventually(lambda: seen(connection, plan) == 51, within_s=60)

    assert before[plan.tables[0].topic]["ada"]["seen"] == 50


def test_a_source_that_was_made_again_is_an_error_with_a_choice(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(50))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
    delete_topic(connection, plan.source.topic)
    create_topic(connection, plan.source.topic, partitions=3, settings={"cleanup.policy": "delete"})
    produce(connection, plan, [*map(some_user, range(200))])

    with pytest.raises(SourceGap, match=r"was deleted and created again.*--from latest"):
        PipelineRun(spark, plan).run()
    with running(spark, plan, choice="latest"):
        eventually(lambda: status(connection, plan)["lag"] == 0, within_s=60)
        produce(connection, plan, [*map(some_user, range(200, 210))])
        eventually(lambda: seen(connection, plan) == 60, within_s=60)


def test_partitions_that_are_added_while_it_runs_are_taken_in(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    produce(connection, plan, [*map(some_user, range(50))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
        alter_topic(connection, plan.source.topic, partitions=5)
        produce(connection, plan, [*map(some_user, range(50, 150))])
        eventually(lambda: settled(connection, plan), within_s=60)

    assert {record.partition for record in records(connection, plan.source.topic)} == set(range(5))


@pytest.mark.parametrize("task", [LosesItsReport, RunsTwice])
def test_a_task_that_loses_its_report_or_runs_twice_changes_nothing(
    spark: SparkSession,
    connection: Connection,
    plan: Pipeline,
    task: type[CommitTask],
) -> None:
    produce(connection, plan, [*map(some_user, range(300)), *BAD])
    with running(spark, plan, steps=BatchSteps(commit=task)):
        eventually(lambda: settled(connection, plan), within_s=60)
        produce(connection, plan, [*map(some_user, range(300, 400))])
        eventually(lambda: settled(connection, plan), within_s=60)

    # Spark's second attempt was enough: the pipeline did not have to begin anew.
    assert status(connection, plan)["generation"] == 1


@pytest.mark.parametrize("reader", [pytest.param(BreaksOff, marks=pytest.mark.quick), IsKilled])
def test_a_reader_that_fails_after_some_records_loses_none(
    spark: SparkSession,
    connection: Connection,
    plan: Pipeline,
    reader: type[SourceTask],
) -> None:
    produce(connection, plan, [*map(some_user, range(20_000))])
    with running(spark, plan, steps=BatchSteps(read=reader)):
        eventually(lambda: settled(connection, plan), within_s=60)

    assert status(connection, plan)["generation"] == 1


def test_a_session_that_runs_tasks_twice_at_once_is_refused(
    spark: SparkSession, plan: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "_conf", spark.sparkContext.getConf().set("spark.speculation", "true"))

    with pytest.raises(BadInput, match=r"spark\.speculation=true"):
        PipelineRun(spark, plan)


def test_of_two_drivers_the_older_ends_and_says_who_took_over_even_without_work(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    older = RunningPipeline(PipelineRun(spark, plan))
    eventually(lambda: status(connection, plan).get("generation") == 1, within_s=60)
    with running(spark, plan):
        produce(connection, plan, [*map(some_user, range(50))])
        eventually(lambda: settled(connection, plan) and older.has_ended, within_s=60)

    with pytest.raises(TakenOver, match=f"was taken over by process {os.getpid()} on "):
        older.end()


def test_of_two_drivers_with_work_the_older_ends_and_nothing_is_lost_or_written_twice(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    older = RunningPipeline(PipelineRun(spark, plan))
    ended = threading.Event()

    def arrive() -> None:
        for number in count(step=10):
            produce(connection, plan, [*map(some_user, range(number, number + 10))])
            if ended.wait(0.2):
                return

    arriving = threading.Thread(target=arrive)
    arriving.start()
    try:
        eventually(lambda: seen(connection, plan) > 0, within_s=60)
        with running(spark, plan):
            before = seen(connection, plan)
            eventually(lambda: seen(connection, plan) > before + 100 and older.has_ended, within_s=60)
            ended.set()
            arriving.join()
            eventually(lambda: settled(connection, plan), within_s=60)
    finally:
        ended.set()
        arriving.join()

    with pytest.raises(TakenOver, match="was taken over by process"):
        older.end()


def test_a_transaction_at_the_sources_end_is_no_gap(
    spark: SparkSession, connection: Connection, plan: Pipeline
) -> None:
    producer = connection.producer(transactional_id=plan.app + "-source")
    producer.init_transactions(10)
    with running(spark, plan):
        for number in range(5):
            producer.begin_transaction()
            for value in map(some_user, range(number * 10, number * 10 + 10)):
                producer.produce(plan.source.topic, value)
            producer.commit_transaction(10) if number % 2 else producer.abort_transaction(10)
            eventually(lambda: settled(connection, plan), within_s=60)

    assert sum(recounted(connection, plan).matches.values()) > 0


def test_the_group_of_its_name_has_its_position(spark: SparkSession, connection: Connection, plan: Pipeline) -> None:
    produce(connection, plan, [*map(some_user, range(50))])
    with running(spark, plan):
        eventually(lambda: settled(connection, plan), within_s=60)
    _, end = log_bounds(connection, plan.source.topic)

    assert committed(connection, plan.app, plan.source.topic) == end
