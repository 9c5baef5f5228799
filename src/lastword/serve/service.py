"""A request in, an answer out: finds the route, waits where a position is asked for, and answers from the replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import NamedTuple, Protocol

from lastword.serve.answers import COMMON, Answer, Refused, answered_at, json_answer
from lastword.serve.events import begins
from lastword.serve.keys import key_of
from lastword.serve.limits import Limits
from lastword.serve.pages import page_of, range_of
from lastword.serve.routes import Route, is_write, parameters, route_of
from lastword.serve.rows import point_read, row_body, value_body
from lastword.serve.standing import readiness, standing
from lastword.serve.streams import Stream, Streams
from lastword.serve.tables import ServedTable
from lastword.serve.waiting import Waiting, position_of
from lastword.serve.writes import acknowledged, delete_of, put_of, writes_of


class RequestHeaders(Protocol):
    def get(self, name: str, /) -> str | None: ...


class Request(NamedTuple):
    method: str
    # Decoded, as routes.py says.
    path: str
    # As it was sent.
    query: str
    headers: RequestHeaders
    body: AsyncIterable[bytes]


class Service:
    """Knows no server: what it is asked for comes as a Request. Used from one event loop."""

    def __init__(self, tables: Iterable[ServedTable], limits: Limits) -> None:
        self._tables = {table.name: table for table in tables}
        self._limits = limits
        self._waiting = Waiting(limits)
        self.streams = Streams(limits, self._waiting)

    async def answer(self, request: Request) -> Answer | Stream:
        """The answer, whatever was asked, or a stream to be run; what is refused has the one error shape."""
        short = False
        try:
            route = route_of(request.path)
            short = route.is_short
            writing = is_write(route, request.method)
            given = parameters(route, request.query, self._limits) if request.query else {}
            if route.kind in ("changes", "all changes"):
                return await self._changes(route, given, request)
            if not route.table:
                return self._of_all(route)
            table = self._table(route.table)
            if writing:
                return await self._write(route, table, given, request)
            if "min_position" in given:
                await self._waiting.until(table, position_of(given["min_position"]))
            return self._of_one(route, table, given, request)
        except Refused as refused:
            return refused.answer(short=short)

    def _table(self, name: str) -> ServedTable:
        table = self._tables.get(name)
        if table is None:
            raise Refused(404, "no_such_table", "no table of this name is served", "those served are at /tables")
        return table

    def _of_all(self, route: Route) -> Answer:
        match route.kind:
            case "health":
                return json_answer({"status": "ok"})
            case "ready":
                return readiness(self._tables.values())
            case _:
                return json_answer({"tables": [standing(table) for table in self._tables.values()]})

    def _of_one(self, route: Route, table: ServedTable, given: dict[str, str], request: Request) -> Answer:
        match route.kind:
            case "row" | "short row":
                key = key_of(route.key, table.key_codec, self._limits)
                body = value_body if route.is_short else row_body
                return point_read(table, key, request.headers.get("if-none-match"), body)
            case "rows":
                return self._rows(table, given)
            case "short rows":
                return self._bare_values(table, given)
            case "count" | "short count":
                position, count = table.ask(lambda store: (store.position, len(store)))
                return json_answer({"count": count}, answered_at(position))
            case _:
                return json_answer(standing(table))

    async def _changes(self, route: Route, given: dict[str, str], request: Request) -> Answer | Stream:
        several = route.kind == "all changes"
        names = given.get("tables", ",".join(self._tables)).split(",") if several else [route.table]
        tables = [self._table(name) for name in dict.fromkeys(names)]
        # What a browser sends when it lost its stream, and asks for the same address again.
        after = request.headers.get("last-event-id") or given.get("after")
        begun = begins(after, [table.name for table in tables], several=several) if after else {}
        stream = await self.streams.begin(tables, begun, several=several)
        if request.method != "HEAD":
            return stream
        stream.close()
        return Answer(200, stream.headers, b"")

    async def _write(self, route: Route, table: ServedTable, given: dict[str, str], request: Request) -> Answer:
        if given:
            raise Refused(400, "bad_query", "a write takes no parameters", "send it without a query")
        _check_origin(request.headers)
        if route.kind == "rows":
            body = await self._body(request)
            writes = writes_of(body, table.key_codec, table.value_codec)
        else:
            key = key_of(route.key, table.key_codec, self._limits)
            deletes = request.method == "DELETE"
            writes = [delete_of(key) if deletes else put_of(key, await self._body(request), table.value_codec)]
        return acknowledged(await table.writes.send(writes), single=route.kind == "row")

    async def _body(self, request: Request) -> bytes:
        """All of the body; Refused as soon as it is too long or too slow."""
        most, chunks, size = self._limits.body_bytes, [], 0
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for chunk in request.body:
                    size += len(chunk)
                    if size > most:
                        raise Refused(413, "body_too_large", f"the body has more than {most} bytes", "send it in parts")
                    chunks.append(chunk)
        except TimeoutError:
            raise Refused(408, "body_too_slow", "the body did not come in time", "send it again") from None
        return b"".join(chunks)

    def _rows(self, table: ServedTable, given: dict[str, str]) -> Answer:
        bodies, cursor, position = page_of(table, range_of(table, given, self._limits), self._limits, row_body)
        following = b"null" if cursor is None else b'"%b"' % cursor.encode()
        told = b'{"rows":[%b],"next":%b,"position":"%b"}' % (b",".join(bodies), following, str(position).encode())
        return Answer(200, [*COMMON, answered_at(position)], told)

    def _bare_values(self, table: ServedTable, given: dict[str, str]) -> Answer:
        bodies, cursor, position = page_of(table, range_of(table, given, self._limits), self._limits, value_body)
        headers = [*COMMON, answered_at(position)]
        if cursor is not None:
            limit = f"&limit={given['limit']}" if "limit" in given else ""
            headers.append(("link", f'</{table.name}?cursor={cursor}{limit}>; rel="next"'))
        return Answer(200, headers, b"[%b]" % b",".join(bodies))


def _check_origin(headers: RequestHeaders) -> None:
    """Refuses a write that a browser sends for a page of another site, which could write without reading."""
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{headers.get('host')}":
        raise Refused(403, "cross_origin", "a page of another site may not write here", "send it without a browser")
