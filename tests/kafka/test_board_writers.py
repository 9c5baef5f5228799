"""One writer of the board at a time, killed at any instant: nothing is counted twice or lost, and all show the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.kafka.topics.topic_changes import delete_topic
from lastword.teams.board.board_session import WRITER, BoardTimes
from lastword.teams.board.live import LiveBoard
from lastword.teams.board.registering import register_team
from support.boards import (
    act,
    action,
    badges_of,
    board_topics,
    counted_from_scratch,
    recount_of_state,
    recount_shown,
    row_of,
    show_the_recount,
    stats,
    write,
)
from support.topic_contents import records_of
from support.waiting import eventually

SOAK = os.environ.get("LASTWORD_SOAK")
KILLS = 15 * int(SOAK) if SOAK else 5

# Keeps what it has counted twenty times as often, so that most kills fall near a transaction.
_WRITE = """\
import sys
from lastword.teams.board.board_session import BoardTimes
from lastword.teams.board.live import LiveBoard
from lastword.kafka.client.connection import Connection
often = BoardTimes(commit_every_s=0.05)
with LiveBoard(Connection(bootstrap_servers=sys.argv[1]), writes=True, report=print, times=often) as live:
    live.wait_until_ready(120)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def topics(connection: Connection) -> Iterator[Connection]:
    with board_topics(connection) as made:
        yield made


@contextmanager
def busy_teams(connection: Connection, chance: random.Random) -> Iterator[None]:
    """Teams that act, tell their numbers and make mistakes, all the time; some in transactions that they take back."""
    done = threading.Event()
    careful = Transactions(connection, "test-board-teams")

    def play() -> None:
        number = 0
        while not done.wait(0.01):
            number += 1
            team = f"team-{chance.randrange(7)}"
            act(connection, *[team] * chance.randrange(5))
            told = stats(team, number, chance.randrange(number + 2))
            write(connection, "team_stats", (team, told), (team, None if chance.random() < 0.1 else told))
            write(connection, "actions", (None, chance.choice([b"{", None, b"[]", action("")])))
            careful.write([OutgoingRecord("actions", action(team))], OutgoingRecord("actions", action("team-careful")))

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        careful.close()


def kill_a_writer(connection: Connection, after_s: float) -> None:
    """Runs one until it shows the board, and so long after that."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITE, connection.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = [line for line in iter(process.stdout.readline, "ready\n") if line]
    assert said == []
    threading.Event().wait(after_s)
    process.kill()
    process.communicate()


@pytest.mark.soak
@pytest.mark.open
def test_after_kills_of_the_writer_at_random_instants_every_record_is_counted_once(topics: Connection) -> None:
    chance = random.Random(7)
    with busy_teams(topics, chance):
        for _ in range(KILLS):
            kill_a_writer(topics, after_s=chance.random() * 0.7)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        show_the_recount(topics, live)
        assert recount_shown(live).actions["team-careful"] > 0 < recount_shown(live).refused
        assert live.board.missed == 0
    # Many times, so that there was something to get wrong.
    assert len(records_of(topics, "board_state")) > KILLS


def test_the_recount_objects_to_rows_that_were_counted_twice(topics: Connection) -> None:
    act(topics, *["team-1"] * 5)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
    assert recount_of_state(topics).actions == {"team-1": 5}
    for record in records_of(topics, "board_state"):
        if record.key is not None and record.key.startswith(b"actions/"):
            damaged = (record.value or b"").replace(b'"next_offset":', b'"next_offset":-')
            write(topics, "board_state", (record.key.decode(), damaged))
    with LiveBoard(topics, writes=False) as again:
        again.wait_until_ready(120)
        assert recount_shown(again) != counted_from_scratch(topics)


def test_the_recount_waits_for_a_transaction_that_is_open(topics: Connection) -> None:
    act(topics, "team-1")
    producer = topics.producer(transactional_id="test-board-open", transaction_timeout_ms=60_000)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("actions", action("team-2"))
    assert producer.flush(30) == 0
    with pytest.raises(AssertionError, match="the condition does not hold"):
        counted_from_scratch(topics, within_s=0.2)
    producer.commit_transaction(60)
    # Its marker may still be on its way: a recount that does not wait counts one less, now and then.
    assert counted_from_scratch(topics).actions == {"team-1": 1, "team-2": 1}


def test_boards_that_differ_from_the_recount_are_told_apart(topics: Connection) -> None:
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
    act(topics, "team-1")
    with pytest.raises(pytest.fail.Exception, match=r"actions: recounted {'team-1': 1}, shown {}"):
        show_the_recount(topics, live, within_s=0)


def told(live: LiveBoard) -> dict[str, Any]:
    """What all must show alike: all but what each measures itself, and when."""
    board = msgspec.to_builtins(live.board.answer())
    for each in board["teams"]:
        del each["lag"], each["actions_per_s"], each["processed_per_s"]
    del board["at"], board["written"]
    return {**board, "last": sorted(map(str, live.board.last_refused))}


def test_the_newest_of_two_writes_and_both_show_the_same(topics: Connection) -> None:
    said: list[str] = []
    act(topics, "team-1", "team-2")
    with LiveBoard(topics, writes=True, report=said.append) as first:
        first.wait_until_ready(120)
        assert first.is_writer
        with LiveBoard(topics, writes=True) as second:
            second.wait_until_ready(120)
            with busy_teams(topics, random.Random(3)):
                eventually(lambda: not first.is_writer and bool(said))
                register_team(topics, "team-99")
                eventually(lambda: row_of(first, "team-99") != {} != row_of(second, "team-99"))
            show_the_recount(topics, first, second)
            eventually(lambda: told(first) == told(second))
            assert second.is_writer
    assert said == ["another process writes the board: this process only reads from now on"]


def test_a_writer_that_falls_silent_is_replaced(topics: Connection) -> None:
    with LiveBoard(topics, writes=True, times=BoardTimes(silence_s=1.0)) as live:
        live.wait_until_ready(120)
        act(topics, "team-1")
        # Another takes the id, and then does nothing with it.
        silent = Transactions(topics, WRITER)
        act(topics, "team-1")
        eventually(lambda: not live.is_writer)
        act(topics, "team-1")
        eventually(lambda: recount_shown(live).actions == {"team-1": 3})
        eventually(lambda: live.is_writer)
        silent.close()
        eventually(lambda: recount_of_state(topics).actions == {"team-1": 3})
    with LiveBoard(topics, writes=False) as again:
        again.wait_until_ready(120)
        assert (recount_shown(again).actions, badges_of(again, "team-1")) == ({"team-1": 3}, ["first_action"])


def test_a_reader_never_takes_the_writers_id(topics: Connection) -> None:
    writer = Transactions(topics, WRITER)
    with LiveBoard(topics, writes=False, times=BoardTimes(silence_s=0.2)) as live:
        live.wait_until_ready(120)
        act(topics, "team-1", "team-1")
        eventually(lambda: recount_shown(live).actions == {"team-1": 2})
        assert "board_state" not in topics.reach().topics
        act(topics, "team-1")
        eventually(lambda: recount_shown(live).actions == {"team-1": 3})
    writer.write([], OutgoingRecord("actions", action("team-1")))
    writer.close()


def test_deleting_its_state_makes_the_board_count_anew(topics: Connection) -> None:
    act(topics, *["team-1"] * 4)
    with LiveBoard(topics, writes=True) as live:
        live.wait_until_ready(120)
        eventually(lambda: recount_of_state(topics).actions == {"team-1": 4})
        delete_topic(topics, "board_state")
        register_team(topics, "team-2")
        eventually(lambda: row_of(live, "team-2") != {} and recount_shown(live).actions == {"team-1": 4})
        eventually(lambda: recount_of_state(topics).actions == {"team-1": 4})
