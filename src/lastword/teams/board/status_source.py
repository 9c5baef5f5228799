"""Where the board gets the status row of the inside teams' pipeline from."""

from __future__ import annotations

from typing import Protocol

from lastword.kafka.client.connection import Connection
from lastword.teams.board.board_topics import PIPELINE, STATUS
from lastword.teams.board.side_topic import SideTopic


class StatusSource(Protocol):
    """The values of the row, as they come. Made for one session of the board, and closed by it."""

    def new_values(self) -> list[bytes | None]:
        """The values that came since the last call, or the newest of them; None is a row that was deleted."""

    def close(self) -> None: ...


class StatusTopic:
    """The row as its topic has it, for a process without a replica of that topic."""

    def __init__(self, connection: Connection) -> None:
        self._topic = SideTopic(connection, STATUS)

    def new_values(self) -> list[bytes | None]:
        return [record.value for record in self._topic.poll() if record.key == PIPELINE.encode()]

    def close(self) -> None:
        self._topic.close()
