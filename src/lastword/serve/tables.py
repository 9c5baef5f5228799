"""A table as it is served: its name, its codecs and its replica, and the waiting for a position."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from lastword.core.codecs import Codec
from lastword.core.errors import BadInput, NotReady
from lastword.core.position import Position
from lastword.replica.replica import Replica
from lastword.replica.store import Store
from lastword.serve.answers import Refused
from lastword.serve.limits import Limits
from lastword.serve.writes import Writes

_LOOK_EVERY_S = 0.005

_Found = TypeVar("_Found")


class ServedTable(NamedTuple):
    name: str
    key_codec: Codec
    value_codec: Codec
    replica: Replica
    writes: Writes

    def ask(self, question: Callable[[Store], _Found]) -> _Found:
        """What the store says; Refused while there is nothing right to show."""
        try:
            return self.replica.ask(question)
        except NotReady:
            # Its message is for a program in this process.
            raise Refused(
                503,
                "not_ready",
                f"the table {self.name} has nothing to show yet: it is {self.replica.state.name}",
                f"ask again soon; how it stands is at /tables/{self.name}",
            ) from None


class Waiting:
    """Reads that wait until a replica has reached their position: a bounded number, for a bounded time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reads = 0

    async def until(self, table: ServedTable, text: str) -> None:
        """Returns when the table's rows have everything before the position; Refused when that takes too long."""
        try:
            wanted = Position.parse(text)
        except BadInput as refusal:
            raise Refused(400, "bad_position", str(refusal), "min_position is written like 0:18,1:5") from None
        if table.replica.position.covers(wanted):
            return
        if self._reads >= self._limits.waiting_reads:
            raise Refused(503, "too_many_waiting", "too many reads wait for a position", "ask again soon")
        self._reads += 1
        try:
            await self._reached(table, wanted)
        finally:
            self._reads -= 1

    async def _reached(self, table: ServedTable, wanted: Position) -> None:
        # A look now and then, because a thread for each waiting read would be what a client can exhaust.
        replica, give_up_at = table.replica, time.monotonic() + self._limits.wait_s
        while not replica.position.covers(wanted):
            if time.monotonic() >= give_up_at or replica.is_closed or replica.state.name == "failed":
                raise Refused(
                    504,
                    "position_not_reached",
                    f"the table {table.name} is at {replica.position or 'no position yet'}, not yet at {wanted}",
                    f"ask again, or look at its state: /tables/{table.name}",
                )
            await asyncio.sleep(_LOOK_EVERY_S)
