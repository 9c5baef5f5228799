"""The verb `board`: the teams in order, live on a terminal."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.output import print_json, print_table
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import printable, when

if TYPE_CHECKING:
    from lastword.teams.board.live import LiveBoard
    from lastword.teams.board.ranking import Board

_EVERY_S = 1.0
# For reading both topics from the end of the counts in board_state.
_PATIENCE_S = 600.0

_EXAMPLE = """\
lastword board
lastword board --once
lastword board --json | jq .actions
lastword board --refused
lastword board --create"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "The board of the teams: badges, lag, actions, processed and flagged users, and their rates, in the order of "
        "badges, then actions, then names. On a terminal the board is drawn every second until Ctrl-C; in a pipe it "
        "is printed once. The verb only reads: `lastword serve --board` keeps the counts in board_state. `-` is an "
        "unknown value, and `reset` marks a team whose counters went back.",
        _EXAMPLE,
        board,
    )
    made.add_argument("--once", action="store_true", help="print it once, on a terminal too")
    made.add_argument(
        "--refused",
        action="store_true",
        help="show the refused records instead: counts by team and reason, and the last records",
    )
    made.add_argument(
        "--create",
        action="store_true",
        help="first create those of the topics new_users, actions and team_stats that are missing",
    )
    options.add_json(made)
    options.add_connection(made)
    return made


def board(args: argparse.Namespace) -> int:
    from lastword.teams.board.board_topics import refuse_missing
    from lastword.teams.board.live import LiveBoard
    from lastword.teams.users.fraud_topics import make_fraud_topics

    connection = cluster_choice.connection(args)
    if args.create:
        make_fraud_topics(connection)
    refuse_missing(connection)
    progress = ProgressLine()
    progress.step("reading the board")
    with LiveBoard(connection, writes=False) as live:
        first = live.wait_until_ready(_PATIENCE_S)
        progress.clear()
        if args.refused:
            _print_refused(first, as_json=args.json)
        elif args.json:
            for team in first.teams:
                print_json(team)
        elif args.once or not sys.stdout.isatty():
            _print_once(first)
        else:
            _follow(live)
    return 0


def _print_once(found: Board) -> None:
    from lastword.cli.teams.board_drawing import lines_of

    for line in lines_of(found):
        print(line)


def _follow(live: LiveBoard) -> None:
    """Draws the board in place, until Ctrl-C."""
    from lastword.cli.teams.board_drawing import Drawing

    drawing = Drawing(sys.stdout)
    try:
        while True:
            drawing.draw(live.board)
            time.sleep(_EVERY_S)
    finally:
        drawing.end()


def _print_refused(found: Board, *, as_json: bool) -> None:
    if as_json:
        for each in found.last_refused:
            print_json(each)
        return
    if not found.refused:
        print("nothing was refused")
        return
    print_table(
        ["TEAM", "COUNT", "REASON", "MEANING"],
        [[_name(each.team), each.count, each.reason, each.meaning] for each in found.refused],
    )
    print()
    print_table(
        ["TIME (UTC)", "RECORD", "TEAM", "REASON", "VALUE"],
        [
            [
                when(each.time),
                f"{each.topic}[{each.partition}] {each.offset}",
                _name(each.team),
                each.words,
                "<tombstone>" if each.excerpt is None else printable(each.excerpt),
            ]
            for each in found.last_refused
        ],
    )


def _name(team: str | None) -> str:
    return "-" if team is None else printable(team)
