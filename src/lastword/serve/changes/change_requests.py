"""The requests for change streams: of one table, or of several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from lastword.serve.changes.change_streams import Stream, Streams
from lastword.serve.changes.events import begins
from lastword.serve.http.answers import Answer, Refused
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.queries import AllChangesQuery, ChangesQuery
from lastword.serve.http.requests import Request
from lastword.serve.tables.served_table import ServedTable

# A client that leaves before its stream began gets no answer; the access log shows this status.
_CLIENT_LEFT = Answer(499, [], b"")


class ChangeRequests:
    """Used from one event loop; `table` gives the table of a name, or raises Refused."""

    def __init__(self, streams: Streams, names: Collection[str], table: Callable[[str], ServedTable]) -> None:
        self._streams = streams
        self._names = names
        self._table = table

    async def of_one(self, request: Request, query: ChangesQuery, name: str) -> Answer | Streamed:
        return await self._begun(request, query, [self._table(name)], several=False)

    async def of_several(self, request: Request, query: AllChangesQuery) -> Answer | Streamed:
        names = self._names if query.tables is None else query.tables.split(",")
        if not names:
            raise Refused("no_such_table", "this server serves no table", "serve one with  lastword serve --table")
        return await self._begun(request, query, [self._table(name) for name in dict.fromkeys(names)], several=True)

    async def _begun(
        self, request: Request, query: ChangesQuery, tables: list[ServedTable], *, several: bool
    ) -> Answer | Streamed:
        # A browser sends this header when it opens a lost stream again.
        after = request.headers.get("last-event-id") or query.after
        positions = begins(after, [table.name for table in tables], several=several) if after else {}
        stream = await _unless_gone(request, self._streams.begin(tables, positions, several=several))
        return _CLIENT_LEFT if stream is None else stream


async def _unless_gone(request: Request, begin: Coroutine[Any, Any, Stream]) -> Stream | None:
    """Reads missed changes for as long as the client stays: this may take a while."""
    beginning, gone = asyncio.ensure_future(begin), asyncio.ensure_future(request.gone())
    try:
        await asyncio.wait({beginning, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not beginning.done():
            beginning.cancel()
            await asyncio.wait({beginning})
            return None
        return beginning.result()
    finally:
        gone.cancel()
