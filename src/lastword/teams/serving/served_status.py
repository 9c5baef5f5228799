"""The pipeline's status row from a replica that the server has anyway, so that its topic is read once."""

from __future__ import annotations

from lastword.core.errors import LastwordError
from lastword.replica.replica import Replica
from lastword.teams.board.board_topics import PIPELINE


class ServedStatus:
    """The board needs only the newest row: each row includes what the board needs of earlier rows (`most_tasks`)."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._last: bytes | None = None

    def new_values(self) -> list[bytes | None]:
        try:
            row = self._replica.ask(lambda reads: reads.find(PIPELINE.encode()).row)
        except LastwordError:
            return []  # nothing to show yet, or the store is being built again: the last row grows old meanwhile
        value = None if row is None else row.value
        if value == self._last:
            return []
        self._last = value
        return [value]

    def close(self) -> None:
        """The server closes its replicas itself."""
