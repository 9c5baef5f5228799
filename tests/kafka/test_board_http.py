"""The board over HTTP and on the command line, as a user has it: processes that serve, ask and print."""

from __future__ import annotations

import gc
import json
import os
import pty
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lastword.core.errors import NotFound
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed
from lastword.kafka.topics.topic_changes import create_topic
from lastword.serve.http.limits import Limits
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from lastword.serve.service import Service
from lastword.teams.board.board_topics import STATUS
from lastword.teams.serving.board_guest import AbsentBoard, BoardGuest
from support.board_reference import recount_of_board
from support.boards import act, action, board_topics, counted_from_scratch, recount_of_state, stats, write, write_status
from support.change_reader import ChangeReader
from support.command_line import CommandLine
from support.schemathesis_runs import NO_STREAMS, readable_output, schemathesis
from support.serve_instance import Instance
from support.service_calls import ask
from support.waiting import eventually

TOKEN = "read-0123456789abcdef"  # noqa: S105


@pytest.fixture
def topics(connection: Connection) -> Iterator[Connection]:
    with board_topics(connection) as made:
        act(made, "team-1", "team-1", "team-2")
        write(made, "team_stats", ("team-1", stats("team-1", 9, 3)), ("team-2", b"{}"))
        write(made, "actions", (None, b"\xff\x1b[2Jnot json"))
        yield made


@pytest.fixture
def served(topics: Connection, tmp_path: Path) -> Iterator[Running]:
    """The board beside a table."""
    wanted, front = [TableToServe.parse("stats=team_stats")], Front(port=0)
    board = BoardGuest(lambda _: None)
    with running(topics, wanted, tmp_path, front, limits=Limits(heartbeat_s=2), guests=[board]) as made:
        made.tables[0].replica.wait_until_ready(120)
        board.live.wait_until_ready(120)
        yield made


def asked(url: str, path: str, **headers: str) -> Any:
    with closing(ChangeReader(url, path, **headers)) as reader:
        return reader.body


def test_the_routes_answer_what_the_document_says(served: Running) -> None:
    document = asked(served.url, "/openapi.json")
    only = ("--include-path-regex", "^/board", "--phases", "coverage,fuzzing", "--max-examples", "5")
    run = schemathesis(f"{served.url}/openapi.json", *only, *NO_STREAMS)
    assert run.returncode == 0, readable_output(run)
    assert "Tested: 5\n" in run.stdout, readable_output(run)
    schema = {"$ref": "#/components/schemas/RefusedAnswer", "components": document["components"]}
    refused = asked(served.url, "/board/refused")
    jsonschema_rs.validate(schema, refused)
    # The newest first.
    assert [(each["topic"], each["team"], each["reason"]) for each in refused["last"]] == [
        ("actions", None, "not_json"),
        ("team_stats", "team-2", "missing_field"),
    ]
    assert [(each["team"], each["count"]) for each in refused["counts"]] == [(None, 1), ("team-2", 1)]
    # A schema that is not so is found out.
    del refused["counts"][0]["reason"]
    assert not jsonschema_rs.is_valid(schema, refused)


def test_the_stream_gives_the_whole_board_at_once_and_whenever_it_has_changed(
    topics: Connection, served: Running
) -> None:
    document = asked(served.url, "/openapi.json")
    answer = document["paths"]["/board/changes"]["get"]["responses"]["200"]
    events = answer["content"]["text/event-stream"]["schema"]["x-events"]
    with closing(ChangeReader(served.url, "/board/changes")) as reader:
        assert reader.headers["content-type"] in answer["content"]
        (first,) = reader.take(1)
        jsonschema_rs.validate({**events[first.name], "components": document["components"]}, first.content)
        assert (first.name, recount_of_board(first.content).actions) == ("board", {"team-1": 2, "team-2": 1})
        act(topics, "team-2", "team-2")
        for event in reader.events(timeout_s=20):
            jsonschema_rs.validate({**events[event.name], "components": document["components"]}, event.content)
            if recount_of_board(event.content).actions == {"team-1": 2, "team-2": 3}:
                break


def test_the_pipelines_status_comes_from_the_served_table(topics: Connection, tmp_path: Path) -> None:
    write_status(topics, ["team-1"], tasks=1)
    wanted = [TableToServe.parse(each) for each in ("stats=team_stats", f"status={STATUS}")]
    board = BoardGuest(lambda _: None)
    with running(topics, wanted, tmp_path, Front(port=0), guests=[board]) as made:
        board.live.wait_until_ready(120)

        def kinds() -> dict[str, str]:
            return {team["team"]: team["kind"] for team in asked(made.url, "/board")["teams"]}

        def badges() -> set[str]:
            return {badge["name"] for badge in asked(made.url, "/board")["teams"][0]["badges"]}

        eventually(lambda: kinds() == {"team-1": "inside", "team-2": "outside"})
        eventually(lambda: "connected" in badges())
        assert "shared_work" not in badges()
        write_status(topics, ["team-1", "team-2"], tasks=2)
        eventually(lambda: "shared_work" in badges())
        assert kinds() == {"team-1": "inside", "team-2": "inside"}
        # The board has no feed of its own for this topic.
        gc.collect()
        feeds = [each for each in gc.get_objects() if isinstance(each, Feed)]
        assert Counter(each._topic for each in feeds)[STATUS] == 1


def test_a_quiet_stream_is_kept_alive_and_is_told_of_a_stop(topics: Connection, tmp_path: Path) -> None:
    limits = Limits(heartbeat_s=0.5, streams=1)
    wanted, board = [TableToServe.parse("stats=team_stats")], BoardGuest(lambda _: None)
    with running(topics, wanted, tmp_path, Front(port=0), limits=limits, guests=[board]) as made:
        board.live.wait_until_ready(120)
        reader = ChangeReader(made.url, "/board/changes")
        assert asked(made.url, "/board/changes")["error"]["code"] == "too_many_streams"
        # Once its rates are known nothing changes any more, and only heartbeats come.
        with suppress(TimeoutError):
            assert {event.name for event in reader.events(timeout_s=3)} == {"board"}
        assert reader.comments >= 2
    *_, last = reader.events(timeout_s=10)
    reader.close()
    assert (last.name, last.content["error"]["code"]) == ("cut", "stopping")


def test_the_board_needs_a_token_like_everything_else(topics: Connection, tmp_path: Path) -> None:
    front = Front(port=0, tokens=Tokens(reading=[TOKEN], writing=[]))
    wanted, board = [TableToServe.parse("stats=team_stats")], BoardGuest(lambda _: None)
    with running(topics, wanted, tmp_path, front, guests=[board]) as made:
        board.live.wait_until_ready(120)
        for path in ("/board", "/board/refused", "/board/changes"):
            assert asked(made.url, path)["error"]["code"] == "unauthorized"
        told = asked(made.url, "/board", authorization=f"Bearer {TOKEN}")
        assert [team["team"] for team in told["teams"]] == ["team-1", "team-2"]


def test_without_the_option_there_is_no_board_and_a_hint() -> None:
    service = Service([], Limits(), guests=[AbsentBoard()])
    for path in ("/board", "/board/refused", "/board/changes"):
        told = ask(service, path)
        assert (told.status, told.code) == (404, "no_such_route")
        assert "--board" in told.json["error"]["hint"]
    service.close()


def test_a_board_without_its_topics_is_not_served(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=1)
    wanted = [TableToServe.parse(f"a={topic_name}")]
    with (
        pytest.raises(NotFound, match="no topic 'actions' and no topic 'team_stats'"),
        running(connection, wanted, tmp_path, Front(port=0), guests=[BoardGuest(lambda _: None)]),
    ):
        pass


def alike(board: dict[str, Any]) -> dict[str, Any]:
    """What two instances must tell alike."""
    teams = [{k: v for k, v in team.items() if not k.endswith("_per_s") and k != "lag"} for team in board["teams"]]
    return {**board, "teams": teams, "at": 0, "written": 0}


def test_two_instances_show_the_same_and_one_goes_on_when_the_other_is_killed(
    topics: Connection, lastword: CommandLine, tmp_path: Path
) -> None:
    write_status(topics, ["team-1"], tasks=3)
    first = Instance(lastword, tmp_path / "first", "stats=team_stats", board=True)
    second = Instance(lastword, tmp_path / "second", "stats=team_stats", board=True)
    with first, second:
        act(topics, *["team-3"] * 5)

        def boards() -> list[dict[str, Any]]:
            return [each.ask("/board").json for each in (first, second)]

        eventually(
            lambda: recount_of_board(boards()[0]) == recount_of_board(boards()[1]) == counted_from_scratch(topics)
        )
        eventually(lambda: alike(boards()[0]) == alike(boards()[1]))
        eventually(lambda: recount_of_state(topics) == counted_from_scratch(topics))
        second.kill()
        act(topics, *["team-3"] * 5)
        eventually(lambda: recount_of_board(first.ask("/board").json) == counted_from_scratch(topics))
        first.stop()
    assert recount_of_state(topics).actions["team-3"] >= 5


def test_the_command_prints_the_board_and_what_was_refused(topics: Connection, lastword: CommandLine) -> None:
    lines = lastword("board").splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["1", "team-1"], ["2", "team-2"]]
    assert lines[3:] == [
        "2 records refused: see  lastword board --refused",
        "no process writes these counts to board_state: run  lastword serve --board",
    ]
    teams = [json.loads(line) for line in lastword("board", "--json").splitlines()]
    assert [(team["team"], team["actions"], team["processed"]) for team in teams] == [
        ("team-1", 2, 9),
        ("team-2", 1, None),
    ]
    told = lastword("board", "--refused")
    assert "missing_field" in told
    assert "\\x1b[2Jnot json" in told
    assert "\x1b" not in told
    refused = [json.loads(line) for line in lastword("board", "--refused", "--json").splitlines()]
    assert [each["reason"] for each in refused] == ["not_json", "missing_field"]
    assert "board_state" not in topics.reach().topics


def test_on_a_terminal_the_board_is_drawn_again_and_again(topics: Connection, lastword: CommandLine) -> None:
    outer, inner = pty.openpty()
    os.set_blocking(outer, False)
    process = lastword.start("board", stdin=inner, stdout=inner, stderr=inner)
    seen = b""

    def has(text: bytes) -> bool:
        nonlocal seen
        try:
            seen += os.read(outer, 65536)
        except BlockingIOError:
            time.sleep(0.05)
        return text in seen

    try:
        eventually(lambda: has(b"team-1"))
        eventually(lambda: has(b"\x1b[5F"))
        write(topics, "actions", (None, action("team-seven")))
        eventually(lambda: has(b"team-seven"))
        process.send_signal(2)
        eventually(lambda: has(b"\x1b[?25h") or process.poll() is not None)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
        os.close(outer)
        os.close(inner)


def test_without_its_topics_the_command_says_what_to_do(lastword: CommandLine, connection: Connection) -> None:
    done = lastword.run("board")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "start the teams with  lastword up" in done.stderr
    away = lastword.run("board", "--bootstrap-servers", "127.0.0.1:1")
    assert away.returncode == 3


def test_help_has_an_example(lastword: CommandLine) -> None:
    said = subprocess.run([lastword.program, "board", "--help"], capture_output=True, text=True).stdout
    assert "lastword board --refused" in said
