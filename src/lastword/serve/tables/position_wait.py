"""Requests that wait until a table reaches a position. Their number and their time are bounded."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import NamedTuple

from lastword.core.errors import BadInput
from lastword.core.position import Position
from lastword.serve.http.answers import Refused, stopping
from lastword.serve.http.limits import Limits
from lastword.serve.tables.served_table import ServedTable

_LOOK_EVERY_S = 0.002
# How long a wait may last once the server stops: shorter than the server waits for open requests.
_LAST_S = 2.0


class _Waiter(NamedTuple):
    table: ServedTable
    is_there: Callable[[], bool]
    done: asyncio.Future[bool]
    give_up_at: float


def position_of(text: str) -> Position:
    try:
        return Position.parse(text)
    except BadInput as refusal:
        raise Refused("bad_position", str(refusal)) from None


class PositionWaits:
    """One loop checks the position for all waiting requests: clients could exhaust a thread for each."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiters: list[_Waiter] = []
        self._looking: asyncio.Task[None] | None = None
        self._stop_at = math.inf

    def stop(self) -> None:
        """Ends every wait soon."""
        self._stop_at = asyncio.get_running_loop().time() + _LAST_S

    async def until(self, table: ServedTable, wanted: Position, is_there: Callable[[], bool] | None = None) -> None:
        """Returns when the table has applied every record before the position; Refused after too long."""
        is_there = is_there or (lambda: table.replica.position.covers(wanted))
        if is_there():
            return
        if len(self._waiters) >= self._limits.waiting_reads:
            raise Refused("too_many_waiting", "too many reads wait for a position")
        table.replica.look_for(wanted)
        loop = asyncio.get_running_loop()
        waiter = _Waiter(table, is_there, loop.create_future(), loop.time() + self._limits.wait_s)
        self._waiters.append(waiter)
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look())
        if not await waiter.done:
            if self._stop_at < math.inf:
                raise stopping()
            raise Refused(
                "position_not_reached",
                f"the table {table.name} is at {table.replica.position or 'no position yet'}, not yet at {wanted}",
                f"ask again, or read its status at /tables/{table.name}",
            )

    async def _look(self) -> None:
        time = asyncio.get_running_loop().time
        while self._waiters:
            still = []
            for waiter in self._waiters:
                replica = waiter.table.replica
                if waiter.done.done():
                    continue  # the client left
                if waiter.is_there():
                    waiter.done.set_result(True)
                elif time() >= min(waiter.give_up_at, self._stop_at) or replica.state.name == "failed":
                    waiter.done.set_result(False)
                else:
                    still.append(waiter)
            self._waiters = still
            await asyncio.sleep(_LOOK_EVERY_S)
