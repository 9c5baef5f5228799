"""Puts an outside team on the board before it has written anything."""

from __future__ import annotations

import msgspec

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import fold_topic
from lastword.kafka.client.writing import Writer
from lastword.teams.board.board_rows import TEAM_PREFIX
from lastword.teams.board.board_shapes import MOST_LETTERS, RegisteredTeam
from lastword.teams.board.board_topics import STATE, make_state_topic
from lastword.teams.board.judging import is_team_name


def register_team(connection: Connection, name: str) -> None:
    """From now on the team is on every board; a team that is registered already stays as it is."""
    if not is_team_name(name):
        raise BadInput(f"the team's name {name[:60]!r} must have 1 to {MOST_LETTERS} characters")
    make_state_topic(connection)
    key = f"{TEAM_PREFIX}{name}".encode()
    if key not in fold_topic(connection, STATE, key=key).rows:
        with Writer(connection, STATE) as writer:
            writer.write(key, msgspec.json.encode(RegisteredTeam(now_ms())))
