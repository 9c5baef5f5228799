"""`lastword broker` as a user runs it: start, stop, status, logs, and every way in which they can fail."""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.kafka.broker.cluster_files import ClusterSpec, NodeFiles, load_spec
from lastword.kafka.client.admin_types import ConfigResource
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.processes import running_with

Done = subprocess.CompletedProcess[str]


def spec_of(line: CommandLine, name: str = "default") -> ClusterSpec:
    spec = load_spec(line.home / "clusters" / name)
    assert spec is not None
    return spec


def node(line: CommandLine, number: int = 1, name: str = "default") -> NodeFiles:
    return NodeFiles(folder=line.home / "clusters" / name / f"node-{number}")


def broker_setting(line: CommandLine, name: str) -> str:
    """A setting as the broker itself tells it."""
    admin = Connection(bootstrap_servers=spec_of(line).bootstrap_servers).admin()
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    settings = admin.describe_configs([broker])[broker].result(10)
    return str(settings[name].value)


def check_failure(line: CommandLine, done: Done, *, code: int, says: str) -> None:
    """One line says it, a tail of the broker's log may follow, and nothing is left running."""
    first, *tail = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert first.startswith("lastword: ")
    assert says in first
    assert all(text.startswith("  | ") and not text.startswith("  | \tat ") for text in tail), done.stderr
    assert done.stdout == ""
    assert running_with(line.home) == []


@pytest.fixture(scope="module")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a cluster that ran once and was stopped in order; tests break copies of it."""
    line = CommandLine(home=tmp_path_factory.mktemp("formatted"))
    line("broker", "start", "--port", "0")
    line("broker", "stop")
    return line.home


@pytest.fixture
def stopped(formatted: Path, alone: CommandLine) -> CommandLine:
    shutil.copytree(formatted, alone.home)
    return alone


@pytest.fixture(scope="module")
def started_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CommandLine, list[Done]]]:
    """A cluster that two commands started at the same time, and what they said."""
    line = CommandLine(home=tmp_path_factory.mktemp("twice"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    starts = [line.start("broker", "start", "--port", "0", **pipes) for _ in range(2)]
    said = [start.communicate(timeout=120) for start in starts]
    yield line, [Done(start.args, start.returncode, *texts) for start, texts in zip(starts, said, strict=True)]
    line("broker", "stop")
    assert running_with(line.home) == []


def test_of_two_starts_at_once_one_waits_and_both_succeed(started_twice: tuple[CommandLine, list[Done]]) -> None:
    line, starts = started_twice
    assert [start.returncode for start in starts] == [0, 0]
    assert sum(": ready after " in start.stdout for start in starts) == 1
    assert sum(": was running already and is ready" in start.stdout for start in starts) == 1
    waited = "lastword: another command is starting or stopping cluster default: waiting for it\n"
    assert sorted(start.stderr for start in starts) == ["", waited]
    assert len(running_with(node(line).properties)) == 1


def test_a_second_start_says_that_it_runs_already(started_twice: tuple[CommandLine, list[Done]]) -> None:
    line, _ = started_twice
    address = spec_of(line).bootstrap_servers
    assert line("broker", "start") == f"cluster default: was running already and is ready at {address}\n"
    assert line("broker", "start", "--port", "0").endswith(f"at {address}\n")
    assert json.loads(line("broker", "start", "--json")) == {
        "bootstrap_servers": address,
        "started": [],
        "recovered": [],
        "cut_off": [],
        "config": None,
    }


def test_status_shows_a_running_broker_and_exits_with_0(started_twice: tuple[CommandLine, list[Done]]) -> None:
    line, _ = started_twice
    (broker,) = spec_of(line).brokers
    shown = json.loads(line("broker", "status", "--json"))
    assert shown == {
        "broker": 1,
        "port": broker.port,
        "pid": int(node(line).pid.read_text()),
        "log": str(node(line).log),
    }
    header, row = line("broker", "status").splitlines()
    assert header.split() == ["BROKER", "STATE", "ADDRESS", "PID", "LOG"]
    assert row.split()[:3] == ["1", "running", f"127.0.0.1:{broker.port}"]


def test_logs_show_as_many_lines_as_asked_for(started_twice: tuple[CommandLine, list[Done]]) -> None:
    line, _ = started_twice
    title, *shown = line("broker", "logs", "--lines", "2").splitlines()
    assert title == f"== broker 1: {node(line).log}"
    assert shown == node(line).log.read_text().splitlines()[-2:]
    assert len(line("broker", "logs", "--lines", "150").splitlines()) == 151


@pytest.mark.parametrize("change", [("--set", "log.cleaner.threads=2"), ("--port", "20000")])
def test_a_running_cluster_is_not_changed(
    started_twice: tuple[CommandLine, list[Done]], change: tuple[str, str]
) -> None:
    line, _ = started_twice
    before = spec_of(line)
    done = line.run("broker", "start", *change)
    assert done.returncode == 2
    assert done.stderr == (
        "lastword: cluster default is running with other settings: stop it first with  lastword broker stop\n"
    )
    assert spec_of(line) == before


def test_the_number_of_brokers_of_a_cluster_can_not_change(started_twice: tuple[CommandLine, list[Done]]) -> None:
    line, _ = started_twice
    done = line.run("broker", "start", "--brokers", "3")
    assert done.returncode == 2
    assert done.stderr == (
        "lastword: cluster default was made with 1 broker(s), which can't change: make another with  --cluster NAME\n"
    )


def test_a_port_in_use_is_named_and_nothing_is_started(alone: CommandLine) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        done = alone.run("broker", "start", "--port", str(port))
    check_failure(alone, done, code=1, says=f"port {port} is taken by another process: choose another with --port")
    assert alone.run("broker", "status").returncode == 1


def test_a_restart_keeps_the_address_the_topics_the_records_and_the_settings(stopped: CommandLine) -> None:
    first = stopped("broker", "start", "--set", "log.cleaner.threads=2")
    stopped("topic", "create", "kept", "--partitions", "2")
    stopped("put", "kept", "a", '{"n": 1}')
    assert stopped("broker", "stop") == "cluster default: 1 broker(s) stopped\n"
    assert stopped.run("broker", "status").returncode == 1
    assert stopped.run("get", "kept", "a").returncode == 3

    second = stopped("broker", "start")

    assert "recovered" not in second
    assert second.rsplit(maxsplit=1)[-1] == first.rsplit(maxsplit=1)[-1]
    assert stopped("get", "kept", "a") == '{"n": 1}\n'
    assert broker_setting(stopped, "log.cleaner.threads") == "2"


def test_an_empty_value_gives_a_setting_back_and_a_setting_that_the_broker_does_not_know_is_named(
    stopped: CommandLine,
) -> None:
    path = stopped.home / "clusters" / "default" / "cluster.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "settings": {"log.cleaner.threads": "2", "num.io.threads": "4"}}))

    done = stopped.run("broker", "start", "--set", "log.cleaner.threads=", "--set", "num.io.thread=5")

    assert done.returncode == 0
    assert "knows no setting 'num.io.thread' and ignores it: did you mean 'num.io.threads'?" in done.stderr
    assert broker_setting(stopped, "log.cleaner.threads") == "1"
    assert broker_setting(stopped, "num.io.threads") == "4"
    assert spec_of(stopped).settings == {"num.io.threads": "4", "num.io.thread": "5"}


@pytest.mark.parametrize("name", ["listeners", "controller.quorum.voters"])
def test_a_setting_of_ours_is_refused(alone: CommandLine, name: str) -> None:
    done = alone.run("broker", "start", "--set", f"{name}=x")
    check_failure(alone, done, code=2, says=f"--set {name}: lastword sets this one itself")
    assert not alone.home.exists()


def test_a_broker_that_refuses_a_setting_leaves_the_cluster_as_it_was(stopped: CommandLine) -> None:
    before = spec_of(stopped)
    done = stopped.run("broker", "start", "--set", "log.cleaner.threads=abc")
    says = (
        "broker 1 died while starting: Kafka refuses a setting: Invalid value abc for configuration "
        "log.cleaner.threads: Not a number of type INT: correct it with --set NAME=VALUE"
    )
    check_failure(stopped, done, code=1, says=says)
    assert "  | " in done.stderr
    assert spec_of(stopped) == before


def test_a_new_cluster_that_refuses_a_setting_was_never_made(alone: CommandLine) -> None:
    done = alone.run("broker", "start", "--port", "0", "--set", "log.cleaner.threads=abc")
    check_failure(alone, done, code=1, says="Kafka refuses a setting: Invalid value abc for configuration")
    assert load_spec(alone.home / "clusters" / "default") is None
    assert not node(alone).data.exists()


def test_a_data_folder_of_another_cluster_is_refused_and_left_alone(stopped: CommandLine) -> None:
    meta = node(stopped).data / "meta.properties"
    meta.write_text(meta.read_text().replace(spec_of(stopped).cluster_id, "AAAAAAAAAAAAAAAAAAAAAA"))
    kept = meta.read_text()
    done = stopped.run("broker", "start")
    check_failure(stopped, done, code=1, says=f"{node(stopped).data} belongs to another cluster (cluster.id is AAAA")
    assert meta.read_text() == kept


def test_data_whose_description_is_lost_is_refused_and_left_alone(stopped: CommandLine) -> None:
    (stopped.home / "clusters" / "default" / "cluster.json").unlink()
    done = stopped.run("broker", "start", "--port", "0")
    check_failure(stopped, done, code=1, says="belongs to another cluster")
    assert (node(stopped).data / "meta.properties").exists()
    assert not (stopped.home / "clusters" / "default" / "cluster.json").exists()


def test_a_data_folder_in_use_by_a_live_process_is_named(stopped: CommandLine) -> None:
    # What an earlier life said must not explain this death.
    node(stopped).log.write_text("java.net.BindException: Address already in use\n")
    with (node(stopped).data / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = stopped.run("broker", "start")
    says = (
        f"broker 1 died while starting: its data folder {node(stopped).data} is in use by another live process: "
        "stop that one first"
    )
    check_failure(stopped, done, code=1, says=says)
    assert "Failed to acquire lock on file .lock" in done.stderr


def test_a_controller_port_that_was_taken_meanwhile_moves_and_the_address_stays(stopped: CommandLine) -> None:
    before = spec_of(stopped)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", before.brokers[0].controller_port))
        listener.listen()
        stopped("broker", "start")
    assert spec_of(stopped).bootstrap_servers == before.bootstrap_servers
    assert spec_of(stopped).brokers[0].controller_port != before.brokers[0].controller_port


@pytest.mark.parametrize("verb", [("broker", "start"), ("broker", "status"), ("status",), ("scan", "t")])
def test_an_unreadable_description_is_one_line(stopped: CommandLine, verb: tuple[str, ...]) -> None:
    path = stopped.home / "clusters" / "default" / "cluster.json"
    path.write_text(path.read_text()[:40])
    check_failure(stopped, stopped.run(*verb), code=1, says=f"{path} can't be read (")


def test_a_home_that_can_not_be_is_one_line(alone: CommandLine) -> None:
    alone.home.write_text("a file where a folder should be")
    done = alone.run("broker", "start", "--port", "0")
    check_failure(alone, done, code=1, says="cluster default can't be kept at")
    assert "LASTWORD_HOME" in done.stderr


@pytest.mark.parametrize(
    "words",
    [("--cluster", "../x"), ("--brokers", "0"), ("--brokers", "10"), ("--port", "70000"), ("--set", "novalue")],
)
def test_nonsense_is_refused_before_anything_is_made(alone: CommandLine, words: tuple[str, str]) -> None:
    done = alone.run("broker", "start", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("lastword: ")
    assert not list(alone.home.glob("clusters/*/node-*"))


def test_stopping_what_does_not_exist_is_done_at_once_and_makes_nothing(alone: CommandLine) -> None:
    assert alone("broker", "stop", "--cluster", "typo") == "cluster typo: was not running\n"
    assert not alone.home.exists()


def test_status_and_logs_of_a_cluster_that_is_not_there_say_how_to_make_it(alone: CommandLine) -> None:
    for verb in ("status", "logs"):
        done = alone.run("broker", verb, "--cluster", "dev")
        says = "there is no cluster dev: create it with  lastword broker start --cluster dev"
        check_failure(alone, done, code=1, says=says)


@pytest.mark.parametrize(
    "words", [("scan", "t"), ("put", "t", "k", "1"), ("topic", "list"), ("topic", "compact", "t"), ("status",)]
)
def test_a_verb_without_a_cluster_exits_with_3_and_says_how_to_start_one(
    alone: CommandLine, words: tuple[str, ...]
) -> None:
    check_failure(
        alone, alone.run(*words), code=3, says="no local cluster is running: start one with  lastword broker start"
    )


def test_an_address_where_nobody_listens_exits_with_3_quickly(alone: CommandLine) -> None:
    began = time.monotonic()
    done = alone.run("get", "t", "k", "--bootstrap-servers", "127.0.0.1:1")
    check_failure(alone, done, code=3, says="no Kafka answers at 127.0.0.1:1 (connection refused): check the address")
    assert time.monotonic() - began < 5


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Three brokers with a row on all of them."""
    line = CommandLine(home=tmp_path_factory.mktemp("three"))
    try:
        line("broker", "start", "--brokers", "3", "--port", "0")
        line("topic", "create", "copies", "--partitions", "3", "--replication", "3")
        line("put", "copies", "a", "1")
        yield line
    finally:
        line("broker", "stop")
        assert running_with(line.home) == []


def test_three_brokers_are_registered_and_hold_a_copy_each(three: CommandLine) -> None:
    spec = spec_of(three)
    connection = Connection(bootstrap_servers=spec.bootstrap_servers)
    assert {broker.port for broker in connection.reach().brokers.values()} == {broker.port for broker in spec.brokers}
    assert [sorted(p.replicas) for p in connection.topic("copies").partitions.values()] == [[1, 2, 3]] * 3
    assert len(three("broker", "status").splitlines()) == 4


def test_the_one_of_three_that_was_killed_is_started_again_alone(three: CommandLine) -> None:
    pids = [node(three, number).pid.read_text() for number in (1, 2, 3)]
    subprocess.run(["kill", "-9", pids[1].strip()], check=True)
    three("put", "copies", "b", "2")
    # Each new client takes some broker for the controller, for a while also the one that is dead.
    connection = Connection(bootstrap_servers=spec_of(three).bootstrap_servers)
    while 2 in connection.reach().brokers:
        with Writer(connection, "copies") as writer:
            writer.write(b"b", b"2")

    again = json.loads(three("broker", "start", "--json"))

    assert (again["started"], again["recovered"]) == ([2], [2])
    assert [node(three, number).pid.read_text() for number in (1, 3)] == [pids[0], pids[2]]
    assert three("count", "copies") == "2\n"


@pytest.mark.long
def test_when_one_of_three_can_not_start_the_others_are_not_left_running(three: CommandLine) -> None:
    three("broker", "stop")
    with (node(three, 2).data / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = three.run("broker", "start")
    check_failure(three, done, code=1, says="broker 2 died while starting: its data folder")

    three("broker", "start")

    assert three("get", "copies", "a") == "1\n"
    create_topic(Connection(bootstrap_servers=spec_of(three).bootstrap_servers), "more", replication=3)
