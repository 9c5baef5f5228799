"""The board as lines of text that line up, and drawn in place on a terminal.

A terminal may show an emoji in one column or in two. So on a terminal the cursor is sent to the column where the next
cell begins, and nothing depends on how wide the terminal thinks that a symbol is.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from lastword.cli.output import styled
from lastword.cli.readable import counted, printable, when
from lastword.teams.board.board_shapes import SYMBOLS, Team
from lastword.teams.board.ranking import Board

_GAP = 2
_LONGEST_NAME = 30
_SLOT = 3  # the columns of a symbol and a space
_TITLES = ("", "TEAM", "BADGES", "LAG", "ACTIONS", "/S", "PROCESSED", "/S", "FLAGGED", "REFUSED", "")
_BADGES = _TITLES.index("BADGES")
_TEXTS = (_TITLES.index("TEAM"), _BADGES, len(_TITLES) - 1)


def lines_of(board: Board, *, is_terminal: bool = False) -> list[str]:
    """The board: a line of titles, a line for each team, and remarks."""
    rows = [_cells(team) for team in board.teams]
    widths = [max(width_of(row[i]) for row in [_TITLES, *rows]) for i in range(len(_TITLES))]
    lines = [styled(_line(_TITLES, widths), "bold")]
    column = 1 + sum(widths[:_BADGES]) + _GAP * _BADGES
    for team, row in zip(board.teams, rows, strict=True):
        line = _line(row, widths)
        lines.append(_placed(line, row[_BADGES], team, column) if is_terminal else line)
    if not rows:
        lines.append("no team has done anything yet")
    return [*lines, *(styled(text, style) for text, style in _remarks(board))]


class Drawing:
    """Draws a board over the one before; `end` leaves the last one on the screen."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._drawn = 0
        # No cursor, and a line that is too long ends at the edge.
        self._terminal.write("\x1b[?25l\x1b[?7l")

    def draw(self, board: Board) -> None:
        lines = lines_of(board, is_terminal=True)
        room = shutil.get_terminal_size().lines - 2
        if len(lines) > room > 0:
            left = len(lines) - room
            lines = [*lines[:room], styled(f"… and {counted(left, 'line')} more", "dim")]
        back = f"\x1b[{self._drawn}F" if self._drawn else ""
        text = "".join(f"\x1b[2K{line}\n" for line in lines)
        self._terminal.write(f"{back}{text}\x1b[J")
        self._terminal.flush()
        self._drawn = len(lines)

    def end(self) -> None:
        self._terminal.write("\x1b[?25h\x1b[?7h")
        self._terminal.flush()


def width_of(text: str) -> int:
    """The columns of a text on a terminal: two for an emoji and for a letter of East Asia."""
    width = 0
    for letter in text:
        if letter == "\ufe0f":
            # This character turns the sign before it, of one column, into an emoji.
            width += 1
        elif not unicodedata.combining(letter) and unicodedata.category(letter) not in ("Mn", "Me", "Cf"):
            width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
    return width


def _cells(team: Team) -> list[str]:
    earned = {badge.name for badge in team.badges}
    return [
        str(team.rank),
        _shortened(printable(team.team)),
        # A column for each badge, so that the badges of all teams line up.
        " ".join(symbol if name in earned else "· " for name, symbol in SYMBOLS.items()),
        _number(team.lag),
        _number(team.actions),
        _rate(team.actions_per_s),
        _number(team.processed),
        _rate(team.processed_per_s),
        _number(team.flagged),
        _number(team.refused),
        "reset" if team.reset else "",
    ]


def _line(cells: Sequence[str], widths: list[int]) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        padding = " " * (width - width_of(cell))
        padded.append(cell + padding if i in _TEXTS else padding + cell)
    return (" " * _GAP).join(padded).rstrip()


def _placed(line: str, badges: str, team: Team, column: int) -> str:
    """The line, with the cursor sent to the column of each badge and of the text after them."""
    before, _, after = line.rpartition(badges)
    earned = {badge.name for badge in team.badges}
    symbols = [symbol if name in earned else "·" for name, symbol in SYMBOLS.items()]
    sent = "".join(f"\x1b[{column + _SLOT * i}G{symbol}" for i, symbol in enumerate(symbols))
    return f"{before}{sent}\x1b[{column + width_of(badges)}G{after}"


def _remarks(board: Board) -> list[tuple[str, str]]:
    remarks = []
    if board.state != "ready":
        remarks.append(
            (f"this is the board of {when(board.at)}: {board.why or 'the cluster does not answer'}", "yellow")
        )
    refused = sum(each.count for each in board.refused)
    if refused:
        remarks.append((f"{counted(refused, 'record')} refused: see  lastword board --refused", "dim"))
    if board.missed:
        remarks.append((f"{counted(board.missed, 'offset')} expired before they were counted", "yellow"))
    if board.written is None:
        remarks.append(("no process writes these counts to board_state: run  lastword serve --board", "dim"))
    return remarks


def _shortened(name: str) -> str:
    while width_of(name) > _LONGEST_NAME:
        name = name[:-2] + "…"
    return name


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
