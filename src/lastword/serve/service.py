"""A request in, an answer out: finds the route, waits where a position is asked for, and answers from the replica."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from lastword.serve.answers import Answer, Refused
from lastword.serve.keys import key_of
from lastword.serve.limits import Limits
from lastword.serve.routes import Route, check_method, parameters, route_of
from lastword.serve.rows import point_read
from lastword.serve.tables import ServedTable, Waiting


class RequestHeaders(Protocol):
    def get(self, name: str, /) -> str | None: ...


class Request(NamedTuple):
    method: str
    # Decoded, as routes.py says.
    path: str
    # As it was sent.
    query: str
    headers: RequestHeaders


class Service:
    """Knows no server: what it is asked for comes as a Request. Used from one event loop."""

    def __init__(self, tables: Iterable[ServedTable], limits: Limits) -> None:
        self._tables = {table.name: table for table in tables}
        self._limits = limits
        self._waiting = Waiting(limits)

    async def answer(self, request: Request) -> Answer:
        """The answer, whatever was asked; what is refused has the one error shape."""
        short = False
        try:
            route = route_of(request.path)
            short = route.is_short
            check_method(request.method)
            given = parameters(route, request.query, self._limits) if request.query else {}
            table = self._table(route)
            if "min_position" in given:
                await self._waiting.until(table, given["min_position"])
            return self._read(route, table, request)
        except Refused as refused:
            return refused.answer(short=short)

    def _table(self, route: Route) -> ServedTable:
        table = self._tables.get(route.table)
        if table is None:
            raise Refused(404, "no_such_table", "no table of this name is served", "those served are listed at /tables")
        return table

    def _read(self, route: Route, table: ServedTable, request: Request) -> Answer:
        match route.kind:
            case "row":
                key = key_of(route.key, table.key_codec, self._limits)
                return point_read(table, key, request.headers.get("if-none-match"))
            case _:
                raise Refused(404, "no_such_route", "nothing is served at this path yet", "see /tables")
