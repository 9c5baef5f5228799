"""`lastword up` with all that it runs, the pipeline too, as a newcomer sees it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from support.command_line import CommandLine
from support.processes import started_with
from support.up_suggestions import run_pasted, suggested_commands
from support.waiting import eventually

_LONG_S = 240


def left_of(line: CommandLine) -> list[str]:
    """The processes that run in its home, whatever they are."""
    return started_with(f"LASTWORD_HOME={line.home}")


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    made = CommandLine(home=tmp_path / "home")
    yield made
    made.run("down")
    eventually(lambda: left_of(made) == [])


def status(line: CommandLine) -> dict[str, dict[str, Any]]:
    return {row["part"]: row for row in map(json.loads, line.run("status", "--json").stdout.splitlines())}


def get(line: CommandLine, path: str, token: str | None = None) -> Any:
    address = status(line)["serve"]["address"].removeprefix("http://")
    asking = http.client.HTTPConnection(address, timeout=30)
    try:
        asking.request("GET", path, headers={} if token is None else {"authorization": f"Bearer {token}"})
        return json.loads(asking.getresponse().read())
    finally:
        asking.close()


def processed(line: CommandLine) -> int:
    row = get(line, "/tables/team_stats/rows/team-1")
    return 0 if "error" in row else int(row["value"]["processed"])


def up(line: CommandLine, *words: str) -> str:
    done = line.run("up", "--detach", *words, timeout_s=_LONG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_pipeline_is_killed_by_hand_and_the_counters_go_on(line: CommandLine) -> None:
    said = up(line, "--port", "0", "--http-port", "0", "--rate", "20")
    assert "ready: table user-profiles with 10 rows at 127.0.0.1:" in said
    assert "pipeline teams in generation 1, HTTP at http://127.0.0.1:" in said
    assert re.search(r"^  http://127\.0\.0\.1:\d+/ +the console", said, re.MULTILINE)
    assert get(line, "/users/user-1")["name"] == "Alice Smith"
    eventually(lambda: processed(line) > 0, within_s=_LONG_S)

    before = processed(line)
    os.kill(status(line)["pipeline"]["pid"], signal.SIGKILL)

    eventually(lambda: status(line)["pipeline"]["restarts"] == 1)
    eventually(lambda: processed(line) > before, within_s=_LONG_S)
    assert status(line)["pipeline"]["last_exit"]["told"] == "was ended by SIGKILL"
    # `down` is the last of them.
    *_, ended = [run_pasted(line, command) for command in suggested_commands(said)]
    assert ended.splitlines() == ["ended users, pipeline, serve", "1 broker(s) stopped"]
    eventually(lambda: left_of(line) == [])


def test_after_a_kill_of_everything_and_a_down_every_user_that_came_is_counted_once(line: CommandLine) -> None:
    up(line, "--port", "0", "--http-port", "0", "--rate", "20")
    eventually(lambda: processed(line) > 0, within_s=_LONG_S)
    before = processed(line)
    for process in left_of(line):
        with suppress(ProcessLookupError):  # it ended with another
            os.kill(int(process.split()[0]), signal.SIGKILL)
    eventually(lambda: left_of(line) == [])

    assert "Kafka recovered its log" in up(line)
    eventually(lambda: processed(line) > before, within_s=_LONG_S)
    line("down")

    up(line, "--cluster-only")
    servers = status(line)["broker"]["address"]
    came = sum(log_bounds(Connection(bootstrap_servers=servers), "new_users")[1].values())
    assert json.loads(line("get", "team_stats", "team-1"))["processed"] == came


def test_a_part_that_fails_is_told_with_its_last_words_and_its_log(line: CommandLine) -> None:
    line("up", "--cluster-only", "--detach", "--port", "0")
    # Its rows would expire, so the pipeline refuses to keep a table in it.
    line("topic", "create", "team_stats", "--set", "cleanup.policy=delete")
    failed = line.run("up", "--detach", "--http-port", "0", timeout_s=_LONG_S)
    assert failed.returncode == 1
    last = failed.stderr.splitlines()[-1]
    assert last.startswith("lastword: pipeline ended with exit code 2: ")
    assert f"see {line.home}/up/pipeline/log and  lastword status" in last
    assert "team_stats" in (line.home / "up" / "pipeline" / "log").read_text()
    assert line.run("status").returncode == 1


@pytest.mark.parametrize("security", [(), ("--secure",)])
def test_every_command_that_up_suggests_for_a_cluster_alone_works(line: CommandLine, security: tuple[str, ...]) -> None:
    said = line("up", "--cluster-only", "--detach", "--port", "0", *security)
    assert [run_pasted(line, command) for command in suggested_commands(said)][-1] == "1 broker(s) stopped\n"


def test_a_port_that_is_taken_is_told_before_anything_starts(line: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = line.run("up", "--detach", "--port", "0", "--http-port", str(port))
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"lastword: port {port} is taken by another process: choose another for HTTP with")
    assert left_of(line) == []


def test_ctrl_c_ends_all_of_an_up_in_the_foreground(line: CommandLine) -> None:
    words = ("up", "--port", "0", "--http-port", "0")
    up = line.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with up:
        assert up.stdout is not None
        said = ""
        while not said.endswith("Ctrl-C ends it all.\n"):
            said += up.stdout.readline() or pytest.fail(f"it ended after: {said}")
        os.killpg(up.pid, signal.SIGINT)
        rest, complaints = up.communicate(timeout=_LONG_S)
    assert (up.returncode, complaints) == (0, "")
    assert rest == "stopping\nended users, pipeline, serve\n1 broker(s) stopped\n"
    eventually(lambda: left_of(line) == [])


def test_locked_it_runs_all_the_same_and_no_secret_shows_anywhere(line: CommandLine) -> None:
    said = up(line, "--port", "0", "--http-port", "0", "--rate", "20", "--secure", "--tls")
    tokens, cluster = line.home / "up" / "tokens", line.home / "clusters" / "default"
    assert f"HTTP wants a token of {tokens}, Kafka a password of {cluster / 'client.properties'}" in said
    assert get(line, "/tables")["error"]["code"] == "unauthorized"
    reading, writing = (words.split()[1] for words in tokens.read_text().splitlines())
    secrets = {reading, writing, *json.loads((cluster / "secrets.json").read_text()).values()}

    def leader() -> dict[str, Any]:
        board = get(line, "/board", reading)
        return dict(board["teams"][0])

    eventually(lambda: len(leader()["badges"]) == 4, within_s=_LONG_S)
    # The first batch has thousands of users, and the later ones few: work that was shared once is known for good.
    shared = [team["team"] for team in get(line, "/board", reading)["teams"] if "⚖️" in str(team["badges"])]
    assert len(shared) == 15
    shown = [said, line("status"), line("board", "--once"), line("scan", "team_stats"), commands_of_all()]
    shown += [json.dumps(get(line, path, reading)) for path in ("/tables", "/board", "/board/refused", "/openapi.json")]
    shown.append(line.run("get", "team_stats", "nobody").stderr)
    wrong = line.home / "wrong.properties"
    wrong.write_text((cluster / "client.properties").read_text().replace("sasl.username=admin", "sasl.username=eve"))
    refused = line.run("get", "team_stats", "team-1", "--config", str(wrong))
    assert refused.returncode == 3
    shown.append(refused.stderr)
    holders = {path for path in line.home.rglob("*") if path.is_file() and any_of(secrets, path.read_bytes())}

    assert not any(any_of(secrets, text.encode()) for text in shown)
    assert holders == {
        tokens,
        wrong,
        cluster / "secrets.json",
        cluster / "client.properties",
        cluster / "node-1" / "server.properties",
    }
    assert [run_pasted(line, command) for command in suggested_commands(said)][-1].endswith("1 broker(s) stopped\n")


def any_of(secrets: set[str], text: bytes) -> bool:
    return any(secret.encode() in text for secret in secrets)


def commands_of_all() -> str:
    """What everyone on the machine can read of every process."""
    return subprocess.run(["ps", "-eww", "-o", "command="], capture_output=True, text=True, check=True).stdout
