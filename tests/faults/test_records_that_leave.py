"""Records that leave a topic at its start leave its table: delete-records, retention, restarts and kills."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from lastword.core.errors import HistoryLost
from lastword.core.fold import fold
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.replica.replica import Replica
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.command_line import JARS, CommandLine
from support.replicas import connection_to, disagreements, log_now, replica_of, store_on_disk, write_rows
from support.waiting import eventually

SOAK = os.environ.get("LASTWORD_SOAK")
KILLS = 20 if SOAK else 3
POLICIES = ["delete", "compact,delete"]


def written(connection: Connection, topic: str, rows: list[tuple[int, str, int]]) -> None:
    """(partition, key, value), all on their way at once."""
    producer = connection.producer(queue_buffering_max_messages=1_000_000)
    for partition, key, value in rows:
        producer.produce(topic, key=key, value=str(value), partition=partition)
    assert producer.flush(30) == 0


def numbered(first: int, last: int) -> list[tuple[int, str, int]]:
    """Rows of two partitions by turns, each under a key of its own."""
    return [(number % 2, f"key-{number:05}", number) for number in range(first, last)]


def lose(connection: Connection, topic: str, before: dict[int, int]) -> None:
    """Deletes the records before these offsets, as the verb of Kafka's tools does."""
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    # Kept while its futures are open: without it they never end.
    admin = connection.admin()
    for future in admin.delete_records(wanted).values():
        future.result()


def agrees(connection: Connection, replica: Replica) -> bool:
    """Whether all that left the log has left the replica; what differs then is a defect."""
    start = log_bounds(connection, replica.topic)[0]
    if replica.log_start != start:
        return False
    assert disagreements(replica, log_now(connection, replica.topic)) == []
    return True


@pytest.fixture(params=POLICIES)
def topic(request: pytest.FixtureRequest, connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=2, settings={"cleanup.policy": request.param})
    return topic_name


def test_records_that_leave_under_a_running_replica_leave_it_and_watchers_are_told(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    written(connection, topic, numbered(0, 200))
    with replica_of(connection, topic, tmp_path / "old", check_every_s=0.2) as replica:
        position, watch = replica.position, replica.watch()
        lose(connection, topic, {0: 50, 1: 50})
        eventually(lambda: agrees(connection, replica))
        changes = [watch.poll(10) for _ in range(100)]
        assert {(change.key, change.deleted, change.swept) for change in changes if change is not None} == {
            (key.encode(), True, True) for _, key, _ in numbered(0, 100)
        }
        assert (len(replica), str(replica.log_start), replica.position) == (100, "0:50,1:50", position)
        with pytest.raises(HistoryLost, match="deletes were found at 100 that no record shows"):
            replica.watch(position)
        with replica_of(connection, topic, tmp_path / "fresh") as fresh:
            assert (list(fresh.scan()), fresh.position) == (list(replica.scan()), position)
            assert (fresh.log_start, len(fresh)) == (replica.log_start, 100)
        # What comes afterwards is given as ever, also for a key that has left.
        written(connection, topic, [(0, "key-00000", 7)])
        change = watch.poll(10)
        assert change is not None
        assert (change.key, change.value, change.swept) == (b"key-00000", 7, False)


def test_records_that_left_while_the_replica_was_closed_are_not_shown_by_a_ready_one(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    written(connection, topic, numbered(0, 200))
    with replica_of(connection, topic, tmp_path):
        pass
    lose(connection, topic, {0: 100, 1: 30})
    with replica_of(connection, topic, tmp_path) as replica:
        assert len(replica) == 70
        assert agrees(connection, replica)
    # Built once: the store goes on.
    assert [path.name for path in tmp_path.glob("store-*")] == ["store-1"]


def test_only_the_row_of_the_partition_that_lost_it_leaves(connection: Connection, topic: str, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    rows = [
        (0, b"a", b"1", now),
        (1, b"a", b"2", now + 10),
        (0, b"b", b"3", now),
        (0, b"b", b"not JSON", now + 10),
        (1, b"c", b"4", now),
    ]
    write_rows(connection, topic, rows)
    with replica_of(connection, topic, tmp_path, check_every_s=0.2) as replica:
        assert (replica[b"a"], replica.split_keys, replica.poison_rows) == (2, 1, 1)
        lose(connection, topic, {1: 1})
        eventually(lambda: agrees(connection, replica))
        assert (replica[b"a"], replica.split_keys, replica.last_good(b"b")) == (1, 0, 3)
        lose(connection, topic, {0: 3})
        eventually(lambda: agrees(connection, replica))
        assert (list(replica), replica.poison_rows, replica.last_good(b"b")) == ([b"c"], 0, None)


def test_retention_empties_a_table_as_it_empties_its_topic(tmp_path: Path) -> None:
    day_ms, now = 86_400_000, int(time.time() * 1000)
    quick = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
    with LocalCluster(name="retention", folder=tmp_path / "cluster", jars=JARS, owned=True) as cluster:
        cluster.start(port=0, settings=quick)
        connection = connection_to(cluster)
        settings = {"cleanup.policy": "delete", "segment.ms": "3600000", "retention.ms": "-1"}
        create_topic(connection, "events", partitions=1, settings=settings)
        old = [(0, f"old-{n}", str(n), now - 9 * day_ms) for n in range(20)]
        new = [(0, f"new-{n}", str(n), now) for n in range(20)]
        # Rolled by the timestamps: the old records are a segment of their own.
        write_rows(connection, "events", [*old, *new])
        with replica_of(connection, "events", tmp_path / "replica", check_every_s=0.2) as replica:
            assert len(replica) == 40
            alter_topic(connection, "events", settings={"retention.ms": str(day_ms)})
            eventually(lambda: str(replica.log_start) == "0:20")
            assert agrees(connection, replica)
            assert sorted(replica) == sorted(key.encode() for _, key, _, _ in new)
            alter_topic(connection, "events", settings={"retention.ms": "1"})
            eventually(lambda: len(replica) == 0 and str(replica.log_start) == "0:40")
            assert replica.state.name == "ready"


def asked(server: Running, path: str) -> Any:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=30)) as asking:
        asking.request("GET", path)
        return json.loads(asking.getresponse().read())


def serving(connection: Connection, topic: str, folder: Path) -> AbstractContextManager[Running]:
    return running(connection, [TableToServe.parse(f"users={topic}")], folder, Front(port=0))


def test_over_http_count_rows_changes_and_log_start_follow(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2, settings={"cleanup.policy": "compact,delete"})
    written(connection, topic_name, numbered(0, 200))
    with serving(connection, topic_name, tmp_path) as server:
        server.tables[0].replica.wait_until_ready(120)
        before = asked(server, "/tables/users")
        assert (before["rows"], before["log_start"], before["topic_log_start"]) == (200, "0:0,1:0", "0:0,1:0")
        with closing(ChangeReader(server.url, "/tables/users/changes")) as reader:
            lose(connection, topic_name, {0: 50, 1: 50})
            events = reader.take(100, timeout_s=60)
        assert {(event.name, event.content["key"], event.content["swept"]) for event in events} == {
            ("delete", key, True) for _, key, _ in numbered(0, 100)
        }
        eventually(lambda: asked(server, "/tables/users")["log_start"] == "0:50,1:50")
        after = asked(server, "/tables/users")
        assert (after["rows"], after["topic_log_start"], after["position"]) == (100, "0:50,1:50", before["position"])
        assert asked(server, "/tables/users/count") == {"count": 100}
        rows = asked(server, "/tables/users/rows")["rows"]
        assert [row["key"] for row in rows] == [key for _, key, _ in numbered(100, 200)]
        # A client from before can't learn of those deletes from the log: it starts over, or is refused.
        with closing(ChangeReader(server.url, "/tables/users/changes", last_event_id=after["position"])) as reader:
            assert reader.take(1)[0].name == "reset"
        with closing(ChangeReader(server.url, "/tables/users/changes", last_event_id="0:90,1:90")) as reader:
            assert (reader.status, reader.body["error"]["code"]) == (410, "position_gone")


def test_a_comparison_explains_rows_that_left_only_one_server(
    lastword: CommandLine, connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2, settings={"cleanup.policy": "compact,delete"})
    written(connection, topic_name, numbered(0, 200))
    with serving(connection, topic_name, tmp_path / "two") as two:
        two.tables[0].replica.wait_until_ready(120)
    lose(connection, topic_name, {0: 50})
    # The second server serves what it has, without a cluster: it can't know that records have left.
    nowhere = Connection(bootstrap_servers="127.0.0.1:1")
    with (
        serving(connection, topic_name, tmp_path / "one") as one,
        serving(nowhere, topic_name, tmp_path / "two") as two,
    ):
        one.tables[0].replica.wait_until_ready(120)
        done = lastword.run("compare", one.url, two.url)
        assert (done.returncode, done.stdout) == (
            0,
            "users: equal, 150 rows at 0:100,1:100, 50 rows explained by a lower log start (0:50 and 0:0)\n",
        )
        outcome = json.loads(lastword.run("compare", two.url, one.url, "--json").stdout)
        assert (outcome["equal"], outcome["left"], outcome["explained"]) == (True, 50, 0)
        assert outcome["log_starts"] == ["0:0,1:0", "0:50,1:0"]


# Ends itself as soon as it has seen so many deletes, in the middle of many more.
_KILLED_WHILE_REMOVING = """\
import os, sys
from lastword.kafka.client.connection import Connection
from lastword.api.table import Table
servers, topic, folder, count = sys.argv[1:]
replica = Table(Connection(bootstrap_servers=servers), topic, key="bytes").replica(folder, check_every_s=0.1)
watch = replica.watch()
print("ready", flush=True)
for number, change in enumerate(watch, 1):
    assert change.swept
    if number == int(count):
        os.kill(os.getpid(), 9)
"""


@pytest.mark.open
@pytest.mark.soak
def test_a_replica_that_is_killed_while_rows_leave_goes_on_at_its_next_start(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    chance, losses, found = random.Random(4), 5000, []
    create_topic(connection, topic_name, partitions=2, settings={"cleanup.policy": "delete"})
    written(connection, topic_name, numbered(0, 2 * losses * (KILLS + 1)))
    log, start = log_now(connection, topic_name), 0
    for _ in range(KILLS):
        start += losses
        words = [connection.bootstrap_servers, topic_name, str(tmp_path), str(chance.randrange(1, losses))]
        killed = subprocess.Popen([sys.executable, "-c", _KILLED_WHILE_REMOVING, *words], stdout=subprocess.PIPE)
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"ready\n"
        lose(connection, topic_name, {0: start, 1: start})
        killed.communicate(timeout=120)
        assert killed.returncode == -signal.SIGKILL
        with store_on_disk(tmp_path) as (_, store):
            rows = {record.key: record for record in store.scan()}
            held = fold(record for record in log if record.offset >= start)
            assert len(store) == len(rows)
            # Nothing that the log holds is missing, and nothing is there that the last start had removed already.
            assert held.items() <= rows.items()
            assert all(record.offset >= store.log_start[record.partition] for record in rows.values())
            assert str(store.topic_log_start) == f"0:{start},1:{start}"
            found.append(len(rows) - len(held))
        with replica_of(connection, topic_name, tmp_path) as replica:
            assert agrees(connection, replica)
    print(f"killed {KILLS} times, with so many of {2 * losses} rows still to be removed: {found}")
    assert any(found)
