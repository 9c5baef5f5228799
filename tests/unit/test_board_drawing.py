"""The board as text: columns that line up, whatever a team is called, and drawn in place on a terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from lastword.cli.teams.board_drawing import Drawing, lines_of, width_of
from lastword.teams.board.board_shapes import SYMBOLS, Badge, RefusedCount, Team
from lastword.teams.board.ranking import Board

ALL = [Badge(name, symbol, 1) for name, symbol in SYMBOLS.items()]


def team(name: str, **changed: Any) -> Team:
    known: dict[str, Any] = {
        "rank": 1,
        "team": name,
        "kind": "inside",
        "badges": [],
        "lag": None,
        "actions": 0,
        "processed": None,
        "flagged": None,
        "actions_per_s": None,
        "processed_per_s": None,
        "reset": False,
        "refused": 0,
    }
    return Team(**{**known, **changed})


def board(*teams: Team, **changed: Any) -> Board:
    known: dict[str, Any] = {
        "at": 1_767_225_600_000,
        "state": "ready",
        "why": None,
        "written": 1,
        "missed": 0,
        "refused": (),
        "last_refused": (),
    }
    return Board(teams=teams, **{**known, **changed})


def test_numbers_stand_to_the_right_and_badges_each_in_its_place() -> None:
    numbers = {"lag": 12, "actions": 12_345, "processed": 99_999, "flagged": 12_345, "actions_per_s": 5.25}
    lines = lines_of(
        board(
            team("team-1", badges=ALL, **numbers),
            team(
                "team-10",
                rank=2,
                badges=[Badge("shared_work", "⚖️", 1)],
                lag=0,
                refused=3,
                processed=7,
                flagged=1,
                reset=True,
            ),
        )
    )
    assert lines == [
        "   TEAM     BADGES       LAG  ACTIONS   /S  PROCESSED  /S  FLAGGED  REFUSED",
        "1  team-1   🔌 📤 ⚖️ 📊   12   12,345  5.2     99,999   -   12,345        0",
        "2  team-10  ·  ·  ⚖️ ·     0        0    -          7   -        1        3  reset",
    ]


@pytest.mark.parametrize(
    ("text", "width"), [("team-1", 6), ("🔌", 2), ("⚖️", 2), ("日本", 4), ("e\u0301", 1), ("", 0), ("\u200b", 0)]
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, width: int) -> None:
    assert width_of(text) == width


def test_a_hostile_name_moves_nothing() -> None:
    lines = lines_of(board(team("a\x1b[2J\n" + "日" * 90), team("b", badges=ALL)))
    assert lines[1].startswith("1  a\\x1b[2J\\n日")
    assert not any("\x1b" in line for line in lines)
    assert lines[1].index("…") > 0
    assert len({width_of(line) for line in lines[1:3]}) == 1


def test_what_there_is_to_say_beside_the_teams_is_said() -> None:
    told = lines_of(
        board(
            state="connecting", why="no broker", written=None, missed=3, refused=(RefusedCount("a", "not_json", "", 2),)
        )
    )
    assert told[1:] == [
        "no team has done anything yet",
        "this is the board of 2026-01-01 00:00:00.000: no broker",
        "2 records refused: see  lastword board --refused",
        "3 offsets expired before they were counted",
        "no process writes these counts to board_state: run  lastword serve --board",
    ]


def test_on_a_terminal_every_badge_is_sent_to_its_column() -> None:
    first, second = lines_of(board(team("a", badges=ALL), team("b")), is_terminal=True)[1:]
    columns = re.findall(r"\x1b\[(\d+)G", first)
    assert columns == re.findall(r"\x1b\[(\d+)G", second) == ["10", "13", "16", "19", "21"]


def test_the_board_is_drawn_over_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "7")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = io.StringIO()
    drawing = Drawing(terminal)
    drawing.draw(board(team("a"), team("b")))
    assert terminal.getvalue().count("\n") == 3
    drawing.draw(board(*(team(f"team-{number}") for number in range(20))))
    second = terminal.getvalue().split("\x1b[3F")[1]
    # No more than the screen has, and what is below is gone.
    assert second.count("\n") == 6
    assert "… and 16 lines more" in second
    assert second.endswith("\x1b[J")
    drawing.end()
    assert terminal.getvalue().endswith("\x1b[?25h\x1b[?7h")
