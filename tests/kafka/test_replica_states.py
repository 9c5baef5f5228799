"""How a replica stands, and how it behaves when its cluster, its disk or its process does not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

import lastword
from lastword.api.table import Table
from lastword.core.errors import (
    ClusterUnreachable,
    NotFound,
    NotReady,
)
from lastword.core.position import Position
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.replica.replica import Replica
from lastword.serve.running import Front, TableToServe, running
from support.cluster_routes import home_of, json_answer
from support.command_line import JARS
from support.generated_logs import Act, Put, leave_open, write_log
from support.replicas import (
    connection_to,
    disagreements,
    make_table,
    replica_of,
    write_rows,
)
from support.waiting import eventually


def test_nothing_of_an_open_transaction_is_shown_and_it_does_not_keep_the_table_from_being_ready_for_ever(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    committed = write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=0),), ending="plain")])
    producer = leave_open(connection, topic_name, [Put(key=b"a", value=b"2", partition=0)])
    with replica_of(connection, topic_name, tmp_path, wait=False, transaction_patience_s=2.0) as replica:
        eventually(lambda: "transaction is open" in str(replica.state.why))
        assert (replica.state.name, replica[b"a"]) == ("catching-up", 1)
        assert f"{topic_name}[0] since offset 1" in str(replica.state.why)
        eventually(lambda: replica.state.name == "ready")
        assert "transaction is open" in str(replica.state.why)
        assert disagreements(replica, committed) == []
        producer.commit_transaction(30)
        eventually(lambda: replica[b"a"] == 2)
        eventually(lambda: replica.state.why is None)


def test_waiting_for_what_does_not_come_ends_with_where_the_replica_is(users: Table, tmp_path: Path) -> None:
    users.put("a", 1)
    with (
        users.replica(tmp_path) as replica,
        pytest.raises(NotReady, match=r"not reached 0:999 within 0.3 s, its state is ready and its position 0:"),
    ):
        replica.wait_for(Position({0: 999}), timeout_s=0.3)


def test_without_a_cluster_a_new_replica_says_so_and_one_with_rows_shows_them(users: Table, tmp_path: Path) -> None:
    users.put("a", 1)
    with users.replica(tmp_path / "known"):
        pass
    nowhere = Connection(bootstrap_servers="127.0.0.1:1", patience_s=1)
    with pytest.raises(ClusterUnreachable, match=r"no Kafka answers at 127.0.0.1:1"):
        Table(nowhere, users.topic).replica(tmp_path / "new")
    with Table(nowhere, users.topic).replica(tmp_path / "known", wait=False) as replica:
        eventually(lambda: replica.state.why is not None)
        assert (replica.state.name, dict(replica)) == ("connecting", {"a": 1})
    with (
        Table(nowhere, users.topic).replica(tmp_path / "new", wait=False) as replica,
        pytest.raises(NotReady, match="nothing to show yet"),
    ):
        len(replica)


def test_a_closed_replica_says_so(users: Table, tmp_path: Path) -> None:
    with users.replica(tmp_path) as replica:
        pass
    replica.close()
    with pytest.raises(NotReady, match="is closed"):
        len(replica)
    for use in (lambda: replica.wait_for("0:1"), replica.wait_until_ready, replica.watch, replica.__enter__):
        with pytest.raises(NotReady, match="is closed"):
            use()
    assert (replica.state.name, replica.lag) == ("failed", 0)
    assert "it is closed" in str(replica.state)


def test_a_program_with_a_replica_can_start_while_its_cluster_is_away(users: Table, tmp_path: Path) -> None:
    users.put("a", 1)
    with users.replica(tmp_path):
        pass
    with (
        lastword.connect("127.0.0.1:1", must_answer=False) as cluster,
        cluster.table(users.topic).replica(tmp_path, wait=False) as replica,
    ):
        assert dict(replica) == {"a": 1}


def test_a_broker_that_is_away_is_a_state_and_the_replica_goes_on_when_it_is_back(
    fragile: LocalCluster, topic_name: str, tmp_path: Path
) -> None:
    connection = connection_to(fragile)
    with make_table(connection, topic_name) as users, users.replica(tmp_path / "replica") as replica:
        replica.wait_for(users.put("a", 1))
        watch = replica.watch()
        fragile.stop()
        eventually(lambda: replica.state.name == "connecting")
        assert "no Kafka answers" in str(replica.state.why)
        assert (dict(replica), replica.get("a")) == ({"a": 1}, 1)
        fragile.start()
        with Table(connection, topic_name) as again:
            again.put("a", 2)
        assert next(watch).value == 2
        eventually(lambda: replica.state.name == "ready")


def test_a_leader_that_dies_is_followed_by_the_next_one(tmp_path: Path) -> None:
    with LocalCluster(name="three", folder=tmp_path / "three", jars=JARS, owned=True) as cluster:
        cluster.start(port=0, brokers=3)
        connection = connection_to(cluster)
        create_topic(connection, "users", partitions=3, replication=3, settings={"min.insync.replicas": "2"})
        with Table(connection, "users") as users, users.replica(tmp_path / "replica") as replica:
            users.put_many([(f"key-{n}", 1) for n in range(50)])
            eventually(lambda: len(replica) == 50)
            pid = cluster.status()[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            with Table(connection, "users") as again:
                again.put_many([(f"key-{n}", 2) for n in range(50)])
            # Well before anyone who asks the dead one gives up.
            eventually(lambda: set(replica.values()) == {2})
            eventually(lambda: (len(replica), replica.state.name) == (50, "ready"))


def test_an_open_transaction_that_came_later_does_not_keep_it_from_being_ready_for_ever_either(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=2)
    write_rows(connection, topic_name, [(0, "a", "1"), (1, "b", "1")])
    open_ones: list[Producer] = [leave_open(connection, topic_name, [Put(key=b"t", value=b"1", partition=1)])]
    try:
        # Longer than goals are fresh, so that a second look finds the second transaction.
        with Table(connection, topic_name).replica(tmp_path, wait=False, transaction_patience_s=3.0) as replica:
            eventually(lambda: "transaction is open" in str(replica.state.why))
            open_ones.append(leave_open(connection, topic_name, [Put(key=b"t", value=b"1", partition=0)]))
            eventually(lambda: replica.state.name == "ready")
    finally:
        for producer in open_ones:
            producer.abort_transaction(30)


@pytest.mark.open
def test_a_process_that_was_stopped_for_long_is_catching_up_when_it_goes_on(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    stopped = subprocess.Popen(
        [sys.executable, "-c", _SAY_STATES, connection.bootstrap_servers, topic_name, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "ready\n"
        stopped.send_signal(signal.SIGSTOP)
        with Table(connection, topic_name) as users:
            users.put_many((f"key-{n % 1000}", "x" * 100) for n in range(400_000))
        time.sleep(2)
        stopped.send_signal(signal.SIGCONT)
        assert [stopped.stdout.readline() for _ in range(2)] == ["catching-up\n", "ready\n"]
    finally:
        stopped.kill()
        stopped.communicate()


_SAY_STATES = """\
import sys, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster, cluster.table(topic).replica(folder, check_every_s=0.5) as replica:
    said = None
    while True:
        with replica._follower.changed:
            replica._follower.changed.wait(1)
            if replica.state.name != said:
                said = replica.state.name
                print(said, flush=True)
"""


def test_a_shorter_retention_is_stored_at_once_also_under_load(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"delete.retention.ms": "86400000"})
    done = threading.Event()

    def load() -> None:
        producer = connection.producer(linger_ms=0)
        while not done.wait(0.001):
            producer.produce(topic_name, key=f"key-{uuid.uuid4()}", value="1")
            producer.poll(0)
        producer.flush(10)

    with Table(connection, topic_name).replica(tmp_path, check_every_s=0.5) as replica:
        thread = threading.Thread(target=load)
        thread.start()
        try:
            alter_topic(connection, topic_name, settings={"delete.retention.ms": "60000"})
            eventually(lambda: stored_retention(replica) == 60_000)
        finally:
            done.set()
            thread.join()


def stored_retention(replica: Replica) -> int:
    store = replica._follower.store
    assert store is not None
    return store.identity.delete_retention_ms


@pytest.mark.open
def test_a_topic_that_is_not_there_and_a_server_that_says_nothing_are_told_apart(
    connection: Connection, tmp_path: Path
) -> None:
    patient = Connection(bootstrap_servers=connection.bootstrap_servers, patience_s=1)
    with pytest.raises(NotFound, match="no topic 'no-such-topic-at-all'"):
        Table(patient, "no-such-topic-at-all").replica(tmp_path / "a")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ClusterUnreachable, match=f"127.0.0.1:{port}"):
            Table(Connection(bootstrap_servers=f"127.0.0.1:{port}", patience_s=1), "t").replica(tmp_path / "b")


@pytest.mark.open
def test_a_file_that_may_not_grow_is_like_a_full_disk_and_the_replica_can_be_closed_and_opened_again(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    said = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, connection.bootstrap_servers, topic_name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert "no space is left" in said.stdout
    assert "free some; the replica then continues by itself" in said.stdout
    with Table(connection, topic_name).replica(tmp_path) as replica:
        assert len(replica) == 2000


_FULL_DISK = """\
import resource, signal, sys, time, lastword
servers, topic, folder = sys.argv[1:]
with lastword.connect(servers) as cluster:
    users = cluster.table(topic)
    replica = users.replica(folder)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    users.put_many((f"key-{n}", "x" * 500) for n in range(2000))
    while replica.state.name != "failed":
        time.sleep(0.05)
    print(replica.state.why)
    replica.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with users.replica(folder) as again:
        assert len(again) == 2000
"""


def test_closing_does_not_wait_for_a_broker_that_hangs(tmp_path: Path, connection: Connection, topic_name: str) -> None:
    with LocalCluster(name="hangs", folder=tmp_path / "hangs", jars=JARS, owned=True) as cluster:
        cluster.start(port=0)
        assert cluster.spec is not None
        # Whoever waits for the broker waits for longer than the test allows.
        hanging = Connection(bootstrap_servers=cluster.spec.bootstrap_servers, patience_s=120)
        create_topic(hanging, topic_name, partitions=1)
        replica = Table(hanging, topic_name).replica(tmp_path / "replica", check_every_s=0.5)
        (broker,) = cluster.status()
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            time.sleep(1.5)
            began = time.monotonic()
            replica.close()
            took = time.monotonic() - began
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert took < 40
    assert Position() == replica.position


def test_a_server_tells_of_a_cluster_that_is_away_as_it_was_and_sees_it_come_back(
    fragile: LocalCluster, tmp_path: Path
) -> None:
    create_topic(fragile.connection, "seen", partitions=1)
    threads = set(threading.enumerate())
    home = home_of(fragile, tmp_path)
    with running(
        fragile.connection, [TableToServe.parse("seen=seen")], tmp_path / "data", Front(port=0), home=home
    ) as made:

        def is_state(state: str) -> bool:
            return bool(json_answer(made.url, "/cluster")[1]["state"] == state)

        eventually(lambda: is_state("connected"))
        before = json_answer(made.url, "/cluster")[1]
        assert before["is_local"] is True
        fragile.stop()
        eventually(lambda: is_state("away"))
        away = json_answer(made.url, "/cluster")[1]
        assert away["cluster_id"] == before["cluster_id"]
        assert [topic["name"] for topic in away["topics"]] == [topic["name"] for topic in before["topics"]]
        assert "lastword broker status" in away["why"]
        assert fragile.connection.bootstrap_servers not in away["why"]
        status, refused = json_answer(made.url, "/topics/seen/compact", "POST")
        assert (status, refused["error"]["code"]) == (503, "not_ready")
        fragile.start()
        eventually(lambda: is_state("connected"))
        assert json_answer(made.url, "/cluster")[1]["at"] > away["at"]
    assert "cluster" not in {thread.name for thread in threading.enumerate() if thread not in threads}
