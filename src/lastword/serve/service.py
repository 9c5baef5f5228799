"""A request in, an answer out: finds the route, waits where a position is asked for, and answers from the replica."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from lastword.console import FIRST, page_files
from lastword.core.shapes.rows import CountAnswer
from lastword.core.shapes.tables import HealthAnswer, TablesAnswer
from lastword.serve.changes.change_streams import Stream, Streams
from lastword.serve.changes.events import begins
from lastword.serve.cluster.cluster_answers import ServedCluster
from lastword.serve.guest import Guest
from lastword.serve.http.answers import COMMON, Answer, Refused, answered_at, json_answer
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.bodies import Bodies
from lastword.serve.http.compression import compressed, is_long
from lastword.serve.http.console_files import Console
from lastword.serve.http.host_check import LOOPBACK_NAMES, RequestHeaders, check_host, check_origin, check_plain
from lastword.serve.http.limits import Limits
from lastword.serve.http.routes import (
    METHODS,
    NOWHERE,
    OPEN_KINDS,
    PAGING,
    Route,
    is_write,
    parameters,
    route_of,
    short_table,
)
from lastword.serve.http.tokens import Tokens
from lastword.serve.http.unsent_answers import Hold, Unsent
from lastword.serve.metrics import Metrics, Requests
from lastword.serve.openapi.document import document
from lastword.serve.tables.keys import key_of
from lastword.serve.tables.pages import range_of, rows_answer, values_answer
from lastword.serve.tables.position_wait import PositionWaits, position_of
from lastword.serve.tables.row_answer import point_read, row_body, value_body
from lastword.serve.tables.row_streams import RowStreams
from lastword.serve.tables.served_table import ServedTable
from lastword.serve.tables.table_status import readiness, table_status
from lastword.serve.tables.writes import delete_of, lines_answer, put_of, single_answer, writes_of

_PAGES = 2

_Done = TypeVar("_Done")

_log = logging.getLogger(__name__)


class Request(NamedTuple):
    method: str
    # Decoded, as routes.py says.
    path: str
    # As it was sent.
    query: str
    headers: RequestHeaders
    body: AsyncIterable[bytes]
    # Returns when the client has left.
    gone: Callable[[], Awaitable[object]]
    # Of the service's `unsent`; whoever asks releases it when the answer was taken.
    hold: Hold


class Service:
    """Knows no server: what it is asked for comes as a Request. Used from one event loop."""

    def __init__(
        self,
        tables: Iterable[ServedTable],
        limits: Limits,
        tokens: Tokens | None = None,
        names: Collection[str] = LOOPBACK_NAMES,
        *,
        guests: Sequence[Guest] = (),
        cluster: ServedCluster | None = None,
    ) -> None:
        self._tables = {table.name: table for table in tables}
        self._short = frozenset(table.name for table in self._tables.values() if table.short)
        self._limits = limits
        self._tokens = tokens
        # By which it may be asked for without a token.
        self._names = names
        self._bodies = Bodies(limits)
        self._waiting = PositionWaits(limits)
        self.unsent = Unsent(limits.unsent_bytes)
        self._guests = guests
        self._guest_routes = {route.path: route for guest in guests for route in guest.routes}
        self._cluster = cluster
        files = page_files()
        self._console = Console(files)
        described = document(self._tables.values(), limits, files, guarded=tokens is not None, guests=guests)
        self._openapi = Answer(200, COMMON, described)
        # Pages take milliseconds, in which the event loop answers hundreds of point reads.
        self._paging = ThreadPoolExecutor(_PAGES, thread_name_prefix="pages")
        self.streams = Streams(limits, self._waiting)
        self._row_streams = RowStreams(limits, self._off_loop)
        self._requests = Requests()
        self._metrics = Metrics(self._tables.values(), self._requests, self.streams, self._row_streams, guests)

    async def answer(self, request: Request) -> Answer | Streamed:
        """The answer, whatever was asked, or a stream to be run; what is refused has the one error shape."""
        began = time.perf_counter()
        route = NOWHERE
        told: Answer | Streamed
        try:
            route = self._route(request.path)
            told = await self._told(route, request)
        except Refused as refused:
            told = refused.answer(short=route.is_short or (route is NOWHERE and self._is_short(request.path)))
        except Exception:
            _log.exception("an answer failed")
            told = Refused("internal", "internal error").answer(short=route.is_short)
        method = request.method if request.method in METHODS else "other"
        status = told.status if isinstance(told, Answer) else 200
        self._requests.note(route.label, method, status, time.perf_counter() - began)
        return told

    async def _told(self, route: Route, request: Request) -> Answer | Streamed:
        writing = is_write(route, request.method)
        if writing:
            check_plain(request.query, request.headers)
        if self._tokens is None:
            check_host(request.headers.get("host"), self._names)
        elif route.kind not in OPEN_KINDS:
            self._tokens.check(request.headers.get("authorization"), writing=writing)
        given = parameters(route, request.query, self._limits) if request.query else {}
        # Two ways that never meet: no method that writes is answered by a read.
        return await (self._write(route, request) if writing else self._read(route, given, request))

    async def _read(self, route: Route, given: dict[str, str], request: Request) -> Answer | Streamed:
        if route.kind in ("changes", "all changes"):
            return await self._changes(route, given, request)
        if route.kind == "topic":
            answer = await self._off_loop(self._served_cluster().topic_answer, route.name)
        elif not route.table:
            found = self._of_all(route, request)
            if not isinstance(found, Answer):
                return _headers_alone(found) if request.method == "HEAD" else found
            answer = found
        else:
            table = self._table(route.table)
            if "min_position" in given:
                # What can never be answered must not wait first.
                self._check(route, table, given)
                await self._waiting.until(table, position_of(given["min_position"]))
            found = await self._of_one(route, table, given, request)
            if not isinstance(found, Answer):
                return _headers_alone(found) if request.method == "HEAD" else found
            answer = found
        return await self._as_it_is_taken(answer, request) if is_long(answer) else answer

    async def _as_it_is_taken(self, answer: Answer, request: Request) -> Answer:
        """A long answer, compressed for who takes that, and held; Refused when too much is held already."""
        request.hold.resize(len(answer.body))
        answer = await compressed(answer, request.headers.get("accept-encoding"))
        request.hold.resize(len(answer.body))
        return answer

    def stop(self) -> None:
        """Ends what waits and what streams, so that nothing holds up a stop; in the event loop."""
        self._waiting.stop()
        self.streams.stop()
        self._row_streams.stop()

    def close(self) -> None:
        """To be called when no request comes any more."""
        self._paging.shutdown()

    def _table(self, name: str) -> ServedTable:
        table = self._tables.get(name)
        if table is None:
            raise Refused("no_such_table", "no table of this name is served")
        return table

    def _route(self, path: str) -> Route:
        guest = self._guest_routes.get(path)
        return route_of(path, self._short) if guest is None else Route("guest", name=guest.kind)

    def _is_short(self, path: str) -> bool:
        return short_table(path, self._short) is not None

    def _of_all(self, route: Route, request: Request) -> Answer | Streamed:
        match route.kind:
            case "console" | "console file":
                name = FIRST if route.kind == "console" else route.name
                return self._console.answer(name, request.headers.get("if-none-match"))
            case "health":
                return json_answer(HealthAnswer())
            case "ready":
                return readiness(self._tables.values(), (guest.why_not_ready() for guest in self._guests))
            case "cluster":
                return self._served_cluster().answer()
            case "metrics":
                return self._metrics.answer()
            case "openapi":
                return self._openapi
            case "guest":
                return self._guest_routes[request.path].answer(self.streams)
            case "tables":
                return json_answer(TablesAnswer([table_status(table) for table in self._tables.values()]))
            case _:
                raise NotImplementedError(route)

    def _check(self, route: Route, table: ServedTable, given: dict[str, str]) -> None:
        if route.kind in ("row", "short row"):
            key_of(route.key, table.key_codec, self._limits)
        elif route.kind in ("rows", "short rows"):
            range_of(table, given, self._limits)

    async def _of_one(
        self, route: Route, table: ServedTable, given: dict[str, str], request: Request
    ) -> Answer | Streamed:
        match route.kind:
            case "row" | "short row":
                key = key_of(route.key, table.key_codec, self._limits)
                body = value_body if route.is_short else row_body
                return point_read(table, key, request.headers.get("if-none-match"), body)
            case "rows" | "short rows":
                if route.kind == "short rows" and given.keys().isdisjoint(PAGING):
                    return await self._row_streams.begin(table, request.hold, request.headers.get("accept-encoding"))
                page = rows_answer if route.kind == "rows" else values_answer
                return await self._off_loop(page, table, given, self._limits)
            case "count" | "short count":
                position, count = table.ask(lambda reads: (reads.position, len(reads)))
                return json_answer(CountAnswer(count), answered_at(position))
            case "table":
                return json_answer(table_status(table))
            case _:
                raise NotImplementedError(route)

    async def _changes(self, route: Route, given: dict[str, str], request: Request) -> Answer | Streamed:
        several = route.kind == "all changes"
        names = given.get("tables", ",".join(self._tables)).split(",") if several else [route.table]
        tables = [self._table(name) for name in dict.fromkeys(names)]
        # What a browser sends when it lost its stream, and asks for the same address again.
        after = request.headers.get("last-event-id") or given.get("after")
        begun = begins(after, [table.name for table in tables], several=several) if after else {}
        stream = await self._unless_gone(request, self.streams.begin(tables, begun, several=several))
        if stream is None:
            return Answer(499, [], b"")
        return _headers_alone(stream) if request.method == "HEAD" else stream

    def _served_cluster(self) -> ServedCluster:
        if self._cluster is None:
            raise Refused("no_such_route", "the cluster is not looked at here", "ask  lastword serve")
        return self._cluster

    async def _unless_gone(self, request: Request, begin: Coroutine[Any, Any, Stream]) -> Stream | None:
        """Reading what was missed may take a while: it ends with the client that asked for it."""
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

    async def _write(self, route: Route, request: Request) -> Answer:
        if self._tokens is None:
            check_origin(request.headers)
        match route.kind:
            case "row":
                return await self._write_row(route, self._table(route.table), request)
            case "rows":
                return await self._write_lines(self._table(route.table), request)
            case "compact":
                return await self._off_loop(self._served_cluster().compact, route.name)
            case _:
                raise NotImplementedError(route)

    async def _write_row(self, route: Route, table: ServedTable, request: Request) -> Answer:
        key = key_of(route.key, table.key_codec, self._limits)
        if request.method == "DELETE":
            return single_answer(await table.writes.send([delete_of(key)]))
        async with self._bodies.received(request.body, request.headers) as body:
            return single_answer(await table.writes.send([put_of(key, body, table.key_codec, table.value_codec)]))

    async def _write_lines(self, table: ServedTable, request: Request) -> Answer:
        async with self._bodies.received(request.body, request.headers) as body:
            # Not in the event loop: many lines take long.
            writes = await self._off_loop(writes_of, body, table.key_codec, table.value_codec, self._limits)
            return lines_answer(await table.writes.send(writes))

    async def _off_loop(self, work: Callable[..., _Done], *given: Any) -> _Done:
        return await asyncio.get_running_loop().run_in_executor(self._paging, work, *given)


def _headers_alone(stream: Streamed) -> Answer:
    stream.close()
    return Answer(200, stream.headers, b"")
