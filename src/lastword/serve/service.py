"""What is the same for every request: finding its route, rights, parameters, compression, errors and metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lastword.console import page_files
from lastword.serve.changes.change_requests import ChangeRequests
from lastword.serve.changes.change_streams import Streams
from lastword.serve.cluster.cluster_answers import ServedCluster
from lastword.serve.cluster.cluster_requests import ClusterRequests
from lastword.serve.guest import Guest, guest_routes
from lastword.serve.http.answers import Answer, Refused
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.compression import compressed, is_long
from lastword.serve.http.console_files import Console
from lastword.serve.http.host_check import LOOPBACK_NAMES, check_host, check_origin, check_plain
from lastword.serve.http.limits import Limits
from lastword.serve.http.queries import parsed
from lastword.serve.http.requests import Request
from lastword.serve.http.routes import METHODS, NOWHERE, Access, Bound, Router
from lastword.serve.http.tokens import Tokens
from lastword.serve.http.unsent_answers import Unsent
from lastword.serve.metrics import Metrics, Requests
from lastword.serve.openapi.document import document
from lastword.serve.route_table import ROUTES, Parts
from lastword.serve.server_status import ServerStatus
from lastword.serve.tables.position_wait import PositionWaits
from lastword.serve.tables.served_table import ServedTable
from lastword.serve.tables.table_requests import TableRequests

_PAGES = 2

_Done = TypeVar("_Done")

_log = logging.getLogger(__name__)


class Service:
    """Answers requests, without knowing the server. Used from one event loop."""

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
        by_name = {table.name: table for table in tables}
        served = by_name.values()
        self._limits = limits
        self._tokens = tokens
        # The values of Host that a server without tokens accepts.
        self._names = names
        self.unsent = Unsent(limits.unsent_bytes)
        # Pages take milliseconds, in which the event loop answers hundreds of point reads.
        self._paging = ThreadPoolExecutor(_PAGES, thread_name_prefix="pages")
        self._waiting = PositionWaits(limits)
        self.streams = Streams(limits, self._waiting)
        self._tables = TableRequests(by_name, limits, self._waiting, self._off_loop)
        self._requests = Requests()
        metrics = Metrics(served, self._requests, self.streams, self._tables.row_streams, guests)
        files = page_files()
        present = guest_routes(guest for guest in guests if guest.is_present)
        described = document([*ROUTES, *present], served, limits, files, guarded=tokens is not None, guests=guests)
        parts = Parts(
            tables=self._tables,
            changes=ChangeRequests(self.streams, by_name.keys(), self._tables.table),
            cluster=ClusterRequests(cluster, self._off_loop),
            console=Console(files),
            status=ServerStatus(served, guests, metrics, described),
            streams=self.streams,
        )
        short = [table.name for table in served if table.short]
        self._router = Router([*ROUTES, *guest_routes(guests)], parts, short)

    async def answer(self, request: Request) -> Answer | Streamed:
        """The answer to any request, or a stream to run; a refusal is an answer too."""
        began = time.perf_counter()
        endpoint = NOWHERE
        answer: Answer | Streamed
        try:
            endpoint, names = self._router.match(request.path)
            answer = await self._answered(endpoint.bound(request.method), names, request)
        except Refused as refused:
            is_short = endpoint.is_short or (endpoint is NOWHERE and self._router.is_short(request.path))
            answer = refused.answer(short=is_short)
        except Exception:
            _log.exception("an answer failed")
            answer = Refused("internal", "internal error").answer(short=endpoint.is_short)
        method = request.method if request.method in METHODS else "other"
        status = answer.status if isinstance(answer, Answer) else 200
        self._requests.note(endpoint.name, method, status, time.perf_counter() - began)
        return answer

    async def _answered(self, bound: Bound, names: tuple[str, ...], request: Request) -> Answer | Streamed:
        route, handler, parameters = bound
        access = route.access
        if access is Access.WRITE:
            check_plain(request.query, request.headers)
        if self._tokens is None:
            check_host(request.headers.get("host"), self._names)
            if access is Access.WRITE:
                check_origin(request.headers)
        elif access is not Access.OPEN:
            self._tokens.check(request.headers.get("authorization"), writing=access is Access.WRITE)
        if request.query:
            parameters = parsed(request.query, route.query, self._limits)
        answer = await handler(request, parameters, *names)
        if not isinstance(answer, Answer):
            return _headers_alone(answer) if request.method == "HEAD" else answer
        return await self._long_answer(answer, request) if is_long(answer) else answer

    async def _long_answer(self, answer: Answer, request: Request) -> Answer:
        """A long answer, compressed if the client accepts gzip; Refused when unsent answers fill the memory."""
        request.hold.resize(len(answer.body))
        answer = await compressed(answer, request.headers.get("accept-encoding"))
        request.hold.resize(len(answer.body))
        return answer

    def stop(self) -> None:
        """Ends waiting requests and streams, so that none holds up a stop. Call it in the event loop."""
        self._waiting.stop()
        self.streams.stop()
        self._tables.row_streams.stop()

    def close(self) -> None:
        """To be called after the last request."""
        self._paging.shutdown()

    async def _off_loop(self, work: Callable[..., _Done], *given: Any) -> _Done:
        return await asyncio.get_running_loop().run_in_executor(self._paging, work, *given)


def _headers_alone(stream: Streamed) -> Answer:
    stream.close()
    return Answer(200, stream.headers, b"")
