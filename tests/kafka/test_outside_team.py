"""A program of somebody else's, with kafka-python, as a team on a cluster that is locked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lastword.api.table import Table
from lastword.cli.cluster_choice import read_properties
from lastword.core.errors import LastwordError, NotFound
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.broker.users import list_users
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.topics.topic_changes import create_topic
from lastword.teams.board.board_shapes import Team
from lastword.teams.board.board_topics import STATE
from lastword.teams.board.live import LiveBoard
from lastword.teams.users.fraud_topics import PARTITIONS, make_fraud_topics
from support.boards import board_topics, stats, write
from support.command_line import JARS, CommandLine
from support.foreign_clients import KafkaConsumer, TopicPartition
from support.team_pipeline import arriving_users
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "outside_team.py"
PAGE = ROOT / "docs" / "security.md"
_LONG_S = 90


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("locked")
    with LocalCluster(name="locked", folder=folder / "cluster", jars=JARS, owned=True) as cluster:
        cluster.start(port=0, security="scram-tls")
        make_fraud_topics(cluster.connection)
        yield cluster


@pytest.fixture(scope="module")
def settings(locked: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of team-16, as `team add` wrote them."""
    assert locked.client_file is not None
    line = CommandLine(
        home=tmp_path_factory.mktemp("line") / "home", environ={"LASTWORD_CONFIG": str(locked.client_file)}
    )
    said = line("team", "add", "team-16")
    (file,) = (line.home / "accounts").glob("*/team-16.properties")
    password = read_properties(file)["sasl.password"]
    assert said.startswith("team team-16: read new_users, team_stats; write actions, team_stats; group team-16\n")
    assert f"are in {file}, which only you can read" in said
    assert "librdkafka 2.6.1 or newer (" in said
    for words in (f'sasl_plain_password="{password}",', f"sasl.password={password}", f'password="{password}";'):
        assert words in said
    assert file.stat().st_mode & 0o077 == 0
    for taken in ("teams", "team-1", "lastword-board"):
        assert line.run("team", "add", taken).returncode == 2
    again = line.run("team", "add", "team-16")
    assert (again.returncode, "user 'team-16' exists already" in again.stderr) == (1, True)
    return file


@pytest.fixture(scope="module")
def team(settings: Path) -> Connection:
    properties = read_properties(settings)
    return Connection(bootstrap_servers=properties.pop("bootstrap.servers"), properties=properties)


def started(settings: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as said:
        return subprocess.Popen([sys.executable, str(EXAMPLE), str(settings)], stdout=said, stderr=said)


def shown(board: LiveBoard) -> Team:
    return next(team for team in board.board.teams if team.team == "team-16")


def counted(board: LiveBoard) -> tuple[int | None, int | None]:
    return shown(board).processed, shown(board).flagged


def recounted(connection: Connection) -> tuple[int, int]:
    values = [record.value for batch in read_log(connection, "new_users") for record in batch]
    users = [json.loads(value or b"") for value in values if value != b"{"]
    return len(users), sum("Linux" in user["user_agent"] for user in users)


def test_it_earns_its_badges_in_order_and_restores_its_counters_after_a_kill(
    locked: LocalCluster, settings: Path, tmp_path: Path
) -> None:
    admin, log = locked.connection, tmp_path / "team.log"
    with LiveBoard(admin, writes=True) as board:
        board.wait_until_ready(_LONG_S)
        assert shown(board).badges == []
        program = started(settings, log)
        try:
            eventually(lambda: "connected" in [badge.name for badge in shown(board).badges], within_s=_LONG_S)
            with arriving_users(admin):
                eventually(lambda: len(shown(board).badges) == 4, within_s=_LONG_S)
                earned = shown(board).badges
                os.kill(program.pid, signal.SIGKILL)
                program.wait()
                processed = counted(board)[0] or 0
                program = started(settings, log)
                eventually(lambda: (counted(board)[0] or 0) > processed, within_s=_LONG_S)
            eventually(lambda: counted(board) == recounted(admin), within_s=_LONG_S)
        finally:
            program.kill()
            program.wait()
    said = log.read_text()

    assert [badge.name for badge in sorted(earned, key=lambda badge: badge.earned)] == [
        "connected",
        "first_action",
        "shared_work",
        "first_stats",
    ]
    assert processed > 0
    assert f"team-16: continues at {processed} processed" in said
    assert "Traceback" not in said


@contextmanager
def busy_stats(connection: Connection) -> Iterator[None]:
    """The other teams write their rows all the time, each time in a transaction, as the pipeline does."""
    ended = threading.Event()

    def write() -> None:
        producer = connection.producer(transactional_id="busy-stats")
        producer.init_transactions(_LONG_S)
        while not ended.wait(0.02):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce("team_stats", stats("team-1", 5, 2), "team-1", partition=partition)
            producer.commit_transaction(_LONG_S)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def restored_by_the_docs(settings: dict[str, str], team: str) -> bytes | None:
    """What the program on the page of security restores."""
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"KafkaConsumer": KafkaConsumer, "TopicPartition": TopicPartition}
    exec(code, names)  # noqa: S102
    found: bytes | None = names["newest_row"](settings, team)
    return found


@pytest.mark.open
def test_it_restores_its_row_from_a_topic_that_others_never_stop_writing_to(
    connection: Connection, tmp_path: Path
) -> None:
    servers = {"bootstrap_servers": connection.bootstrap_servers}
    settings, log = tmp_path / "team-16.properties", tmp_path / "team.log"
    settings.write_text(
        f"bootstrap.servers={connection.bootstrap_servers}\nsecurity.protocol=plaintext\nsasl.username=team-16\n"
    )
    with board_topics(connection):
        for processed in (3, 7):
            row = {**json.loads(stats("team-16", processed, 2)), "malformed": 0, "position": {}}
            write(connection, "team_stats", ("team-16", json.dumps(row).encode()))
        with busy_stats(connection):
            # Every partition ends with the end of a transaction, which nobody is shown.
            eventually(lambda: all(end > 1 for end in log_bounds(connection, "team_stats")[1].values()))
            program = started(settings, log)
            try:
                eventually(lambda: "team-16: continues at 7 processed" in log.read_text(), within_s=_LONG_S)
            finally:
                program.kill()
                program.wait()
            assert json.loads(restored_by_the_docs(servers, "team-16") or b"")["processed"] == 7
            # The negative control: the usual way reads on past the end that it saw.
            usual = KafkaConsumer("team_stats", **servers, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
            there = sum(log_bounds(connection, "team_stats")[1].values())
            assert len(list(islice(usual, there + 100))) == there + 100
            usual.close()


def test_it_is_refused_everything_else(locked: LocalCluster, team: Connection) -> None:
    create_topic(locked.connection, "secret", partitions=1)
    with Table(locked.connection, "actions") as actions:
        actions.put("k", {"customer": "x"})

    assert set(team.reach().topics) == {"new_users", "actions", "team_stats"}
    with pytest.raises(NotFound):
        team.topic("secret")
    with pytest.raises(NotFound):
        team.topic(STATE)
    with pytest.raises(LastwordError, match="needs the right Read on the topic"):
        list(read_log(team, "actions"))
    with Table(team, "new_users") as users, pytest.raises(LastwordError, match="needs the right Write on the topic"):
        users.put("k", {})
    with pytest.raises(LastwordError, match="needs the right Read on the consumer group"):
        GroupPosition(team, "team-1").commit({"new_users": log_bounds(team, "new_users")[1]})
    with pytest.raises(LastwordError, match="needs the right Create on the topic"):
        create_topic(team, "mine", partitions=1)
    with pytest.raises(LastwordError, match="needs the rights Describe and Alter on the cluster"):
        list_users(team)
