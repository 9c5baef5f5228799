"""`lastword.local()` and LocalCluster: what they keep, what they leave alone and what they leave behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lastword
from lastword.core.errors import BadInput, BrokerFailed
from lastword.jvm.jars import broker_jar_lock, ensure_jars
from lastword.jvm.java import find_java
from lastword.kafka.broker.broker_process import Jvm, archive_options, broker_archive
from lastword.kafka.broker.local_cluster import LocalCluster
from support.command_line import JARS
from support.processes import running_with
from support.waiting import eventually

# Every letter that Java, log4j, a shell or a list of folders could take for something else.
ODD = "jos\\é $HOME 日 %d ${x} 'q'"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LASTWORD_JARS", str(JARS))
    return tmp_path / "home"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary clusters are made during this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def detached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The cluster `dev` in a home with an odd name: it runs, and nobody owns it."""
    folder = tmp_path_factory.mktemp("detached") / ODD / "clusters" / "dev"
    cluster = LocalCluster(name="dev", folder=folder, jars=JARS)
    cluster.start(port=0)
    yield cluster
    assert cluster.stop() == (1,)
    assert running_with(folder) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process maps, in /proc")
def test_a_broker_maps_the_class_archive_that_setup_made(cluster: LocalCluster) -> None:
    (broker,) = cluster.status()
    maps = Path(f"/proc/{broker.pid}/maps").read_text()

    assert [line for line in maps.splitlines() if f"{JARS}/broker-" in line and line.endswith(".jsa")]


def test_a_damaged_class_archive_costs_time_and_no_start(tmp_path: Path) -> None:
    java = find_java()
    jvm = Jvm(java=java, jars=ensure_jars(broker_jar_lock(), JARS, java, print))
    # As large as an archive, with bytes in the middle that no JVM wrote.
    whole = bytearray(broker_archive(jvm, JARS).path.read_bytes())
    whole[len(whole) // 4 : len(whole) // 2] = bytes(len(whole) // 2 - len(whole) // 4)
    damaged = broker_archive(jvm, tmp_path).path
    damaged.write_bytes(whole)
    options = archive_options(jvm, tmp_path)
    assert any(str(damaged) in option for option in options)
    with LocalCluster(name="a", folder=tmp_path / "a", jars=JARS, owned=True, jvm_options=options) as cluster:
        cluster.start(port=0)
        assert cluster.connection.reach().brokers


def pids(cluster: LocalCluster) -> list[int | None]:
    return [broker.pid for broker in cluster.status()]


def test_a_free_port_that_is_taken_while_the_broker_starts_is_replaced_by_another(tmp_path: Path) -> None:
    cluster = LocalCluster(name="raced", folder=tmp_path / "raced", jars=JARS, owned=True)
    with cluster, ThreadPoolExecutor(1) as threads:
        starting = threads.submit(cluster.start, port=0)
        eventually(lambda: cluster.spec is not None)
        assert cluster.spec is not None
        # Formatting its folder takes the broker longer than this.
        with socket.create_server(("127.0.0.1", cluster.spec.brokers[0].port)) as thief:
            began = starting.result()
            assert str(thief.getsockname()[1]) not in began.bootstrap_servers
        assert cluster.connection.reach().brokers


def test_a_cluster_without_a_name_leaves_nothing_behind_whatever_happens_in_the_block(
    home: Path, temporary: Path
) -> None:
    with pytest.raises(ZeroDivisionError), lastword.local(home=home) as cluster:  # noqa: PT012 - the whole story
        (folder,) = temporary.iterdir()
        assert len(running_with(folder / "node-1" / "server.properties")) == 1
        users = cluster.create_table("users", partitions=1)
        ack = users.put("user-1", {"name": "Alice"})
        assert (ack.partition, ack.offset) == (0, 0)
        assert users.get("user-1") == {"name": "Alice"}
        raise ZeroDivisionError
    assert list(temporary.iterdir()) == []
    assert running_with(temporary) == []
    assert not home.exists()


def test_a_cluster_that_can_not_start_leaves_nothing_behind(home: Path, temporary: Path) -> None:
    with pytest.raises(BrokerFailed, match="Kafka refuses a setting"):
        lastword.local(home=home, settings={"log.cleaner.threads": "abc"})
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_a_named_cluster_keeps_its_tables(home: Path) -> None:
    with lastword.local("dev", home=home) as cluster:
        cluster.create_table("users").put("user-1", 1)
        first = cluster.bootstrap_servers
    assert running_with(home) == []
    with lastword.local("dev", home=home) as cluster:
        assert cluster.bootstrap_servers == first
        assert cluster.table("users").get("user-1") == 1


def test_a_home_may_have_any_letters(detached: LocalCluster) -> None:
    assert (detached.folder / "node-1" / "data" / "meta.properties").exists()
    assert "Kafka Server started" in (detached.folder / "node-1" / "broker.log").read_text()


def test_a_cluster_that_ran_already_goes_on_running_after_the_block(detached: LocalCluster) -> None:
    before = pids(detached)
    with lastword.local("dev", home=detached.folder.parent.parent) as cluster:
        assert detached.spec is not None
        assert cluster.bootstrap_servers == detached.spec.bootstrap_servers
    assert pids(detached) == before


def test_a_running_cluster_survives_a_start_that_asks_for_another_one(detached: LocalCluster) -> None:
    before = pids(detached)
    with pytest.raises(BadInput, match="which can't change"):
        lastword.local("dev", home=detached.folder.parent.parent, brokers=3)
    assert pids(detached) == before


def test_a_killed_broker_is_started_again_and_said_to_have_recovered(detached: LocalCluster) -> None:
    (pid,) = pids(detached)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    again = detached.start()
    assert (again.started, again.recovered) == ((1,), (1,))
    assert pids(detached) not in ([None], [pid])


def test_too_little_disk_is_said_before_anything_is_made(tmp_path: Path) -> None:
    cluster = LocalCluster(name="dev", folder=tmp_path / "dev", jars=JARS, min_free_bytes=2**60)
    with pytest.raises(BrokerFailed, match=r"^only \d+ MiB free at .*/dev, 1099511627776 MiB are needed: make room"):
        cluster.start(port=0)
    assert [path.name for path in cluster.folder.iterdir()] == ["cluster.lock"]


def test_a_broker_that_needs_longer_goes_on_and_the_next_start_waits_for_it(tmp_path: Path) -> None:
    cluster = LocalCluster(name="slow", folder=tmp_path / "slow", jars=JARS, ready_timeout_s=0.1)
    with pytest.raises(BrokerFailed, match="is not ready after 0 s and is still starting: wait for it with  lastword"):
        cluster.start(port=0)
    patient = LocalCluster(name="slow", folder=tmp_path / "slow", jars=JARS)
    assert patient.start().started == ()
    assert patient.stop() == (1,)


def test_what_can_not_be_stopped_is_not_said_to_be(tmp_path: Path) -> None:
    # A lock without a pid: whoever holds it can't be found.
    held = LocalCluster(name="held", folder=tmp_path / "held", jars=JARS)
    node = held.folder / "node-1"
    node.mkdir(parents=True)
    script = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(node / "running.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BrokerFailed, match=r"^broker 1 could not be stopped: end the process that holds .*lock$"):
            held.stop(timeout_s=0.1)
        holder.kill()
