"""kill -9 of what a pipeline runs on, at any instant: afterwards all is as a recount of the source says."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition

from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import delete_topic
from lastword.kafka.topics.topic_description import list_topics
from lastword.teams.users.user_topic import write_users
from support.command_line import CommandLine
from support.killed_processes import Driver, kill_broker, kill_executor
from support.pipelines import written
from support.spark_cluster import standalone
from support.team_pipeline import TEAMS_FILE, arriving_users, make_team_topics, recounted_teams, teams_plan
from support.waiting import eventually

# A round of a soak has five kills on one machine and five on a cluster of Spark's: ten rounds are a hundred.
ROUNDS = int(os.environ.get("LASTWORD_SOAK", "0"))
_LONG_S = 180


SPARKS_OWN_SINK = """
from pyspark.sql import functions as F

from lastword.teams.users.user_topic import write_users
from lastword.kafka.client.connection import Connection
from lastword.pipeline.evaluation.evaluate import counters_of, evaluated, value_of
from lastword.spark.session.session import session
from support.team_pipeline import teams_plan

plan = teams_plan()
spark = session(Connection(bootstrap_servers="{servers}"), master="local[2,4]")
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
records = records.option("subscribe", "new_users").option("startingOffsets", "earliest")
records = records.option("maxOffsetsPerTrigger", 5000).load().selectExpr("*", "true AS plain", "false AS is_end")
rows = evaluated(records, plan, counters_of(spark, plan))
made = [F.struct(F.lit(number).alias("rule"), F.col(value_of(number)).alias("value")) for number in range(15)]
rows = rows.select("partition", "offset", F.explode(F.array(*made))).where("col.value IS NOT NULL")
place = F.concat_ws("/", F.lit("new_users"), "partition", "offset")
rules = F.array(*[F.lit(rule.name) for rule in plan.rules])
headers = [("source", place), ("rule", F.element_at(rules, F.col("col.rule") + 1))]
headers = F.array(*[F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in headers])
sink = rows.select("col.value", headers.alias("headers")).writeStream.format("kafka")
sink = sink.option("kafka.bootstrap.servers", "{servers}").option("topic", "actions").option("includeHeaders", "true")
sink.option("checkpointLocation", "{checkpoint}").start().awaitTermination()
"""


@pytest.fixture
def team_topics(fragile: LocalCluster) -> Iterator[Connection]:
    assert fragile.spec is not None
    connection = Connection(bootstrap_servers=fragile.spec.bootstrap_servers)
    make_team_topics(connection)
    yield connection
    for topic in list_topics(connection):
        delete_topic(connection, topic.name)


def driver_of(connection: Connection, folder: Path, master: str) -> Driver:
    line = CommandLine(home=folder / "home", environ={"LASTWORD_BOOTSTRAP_SERVERS": connection.bootstrap_servers})
    # As much as a worker of the cluster has.
    words = ("run", str(TEAMS_FILE), "--master", master, "--set", "spark.executor.memory=512m")
    return Driver(lambda log: line.start(*words, stdout=log, stderr=log), folder / "driver.log")


def kill_and_start(cluster: LocalCluster) -> None:
    kill_broker(cluster)
    cluster.start()


def some_of(kills: list[Callable[[], None]]) -> list[Callable[[], None]]:
    """In any order: all of them in each round of a soak, else two."""
    return random.sample(kills * ROUNDS, len(kills) * ROUNDS) if ROUNDS else random.sample(kills, 2)


def reached(connection: Connection) -> int:
    """How many records the group of the pipeline's name has behind it."""
    consumer = connection.consumer(group_id="teams")
    try:
        with suppress(LastwordError, KafkaException):
            _, end = log_bounds(connection, "new_users")
            places = consumer.committed([TopicPartition("new_users", partition) for partition in end], timeout=10)
            return sum(max(0, place.offset) for place in places)
    finally:
        consumer.close()
    return 0


def survive(connection: Connection, driver: Driver, kills: list[Callable[[], None]]) -> None:
    """Kills one after the other, each at a random instant after some progress, and then compares with a recount.

    Users trickle in, and before some kills thousands at once: then a task is killed in the midst of its share.
    """
    plan, chosen = teams_plan(), random.Random()

    def has_gone_on(before: int) -> bool:
        driver.keep()
        return reached(connection) > before

    with arriving_users(connection) as let_come:
        eventually(lambda: has_gone_on(0), within_s=_LONG_S)
        for kill in kills:
            let_come(chosen.choice([0, 20_000]))
            time.sleep(chosen.uniform(0, 3))
            before = reached(connection)
            kill()
            eventually(lambda before=before: has_gone_on(before), within_s=_LONG_S)  # type: ignore[misc]
    _, end = log_bounds(connection, plan.source.topic)
    eventually(lambda: has_gone_on(sum(Position(end).values()) - 1), within_s=_LONG_S)
    said = driver.end()
    there = written(connection, plan)

    assert there == recounted_teams(connection), said
    assert len(there.matches) > 100
    assert there.rejects


@pytest.mark.quick
@pytest.mark.soak
def test_drivers_jvms_workers_and_brokers_that_are_killed_change_nothing(
    fragile: LocalCluster, team_topics: Connection, tmp_path: Path
) -> None:
    driver = driver_of(team_topics, tmp_path, "local[2,4]")

    def kill_all() -> None:
        driver.kill()
        kill_and_start(fragile)

    kills = [driver.kill, driver.kill_jvm, driver.kill_worker, lambda: kill_and_start(fragile), kill_all]
    try:
        survive(team_topics, driver, some_of(kills))
    finally:
        driver.kill()


def test_the_recount_finds_what_sparks_own_sink_writes_twice_when_it_is_killed(
    team_topics: Connection, tmp_path: Path
) -> None:
    """The negative control of the tests above: the same rules and kills, without our transactions."""
    write_users(team_topics, count=20_000)
    program = SPARKS_OWN_SINK.format(
        servers=team_topics.bootstrap_servers,
        checkpoint=tmp_path / "checkpoint",
    )
    command = [sys.executable, "-c", program]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    driver = Driver(
        lambda log: subprocess.Popen(command, env=environ, stdout=log, stderr=log, text=True), tmp_path / "driver.log"
    )

    def actions() -> int:
        return sum(log_bounds(team_topics, "actions")[1].values())

    def has_written_more(before: int) -> bool:
        driver.keep()
        return actions() > before

    plan, recount = teams_plan(), recounted_teams(team_topics).matches
    try:
        for _ in range(10):
            before = actions()
            eventually(lambda before=before: has_written_more(before), within_s=_LONG_S)  # type: ignore[misc]
            driver.kill()
            if written(team_topics, plan).matches - recount:
                break
        eventually(lambda: has_written_more(sum(recount.values()) - 1), within_s=_LONG_S)
    finally:
        driver.kill()
    there = written(team_topics, plan).matches

    assert there - recount


@pytest.mark.soak
def test_executors_and_drivers_of_a_cluster_that_are_killed_change_nothing(
    fragile: LocalCluster, team_topics: Connection, tmp_path: Path
) -> None:
    with standalone(tmp_path) as master:
        driver = driver_of(team_topics, tmp_path, master)

        def kill_all() -> None:
            kill_executor()
            driver.kill()
            kill_and_start(fragile)

        kills = [kill_executor, kill_executor, kill_executor, driver.kill, kill_all]
        try:
            survive(team_topics, driver, some_of(kills))
        finally:
            driver.kill()
