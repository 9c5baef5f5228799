"""The server: granian in a thread of this process. Its handler passes requests to the service."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, LastwordError
from lastword.processes.ports import PortPicker, await_free, is_ending
from lastword.serve.http.access_log import AccessLine, AccessLog
from lastword.serve.http.answers import Answer
from lastword.serve.http.backpressure import BoundedStream, Gone, Stalled, Streamed, socket_of
from lastword.serve.http.bodies import pass_over, whole
from lastword.serve.http.requests import Request
from lastword.serve.http.unsent_answers import LARGE_BYTES, Hold
from lastword.serve.service import Service

LOOPBACK = "127.0.0.1"
_START_S = 10.0
_SLOW_HEADERS_MS = 10_000
# The largest head of a request, for each connection. An address has up to 64 KiB.
_BUFFER_BYTES = 128 * 1024
_BACKLOG = 1024

_log = logging.getLogger(__name__)


class HttpServer:
    """Serves from `start` to `stop`; port 0 takes a free port."""

    def __init__(
        self,
        service: Service,
        *,
        host: str,
        port: int,
        stall_s: float,
        access: AccessLog | None = None,
        drain_s: float = 5.0,
    ) -> None:
        self.port = port or _free_port()
        self._host = host
        self._service = service
        self._stall_s = stall_s
        self._access = access
        self._drain_s = drain_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Any = None
        self._failure: BaseException | None = None
        # A daemon, because a client that sends half a request could keep the thread for ever.
        self._thread = threading.Thread(target=self._run, name=f"http on {self.port}", daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Returns once the server takes requests."""
        check_free(self._host, self.port)
        self._thread.start()
        give_up_at = time.monotonic() + _START_S
        while not _answers(self._host, self.port):
            if not self._thread.is_alive() or time.monotonic() >= give_up_at:
                raise LastwordError(
                    f"no HTTP on port {self.port}: {self._failure or f'the server did not start in {_START_S:.0f} s'}"
                )
            time.sleep(0.01)

    @property
    def is_up(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> bool:
        """Ends streams, takes no more requests and lets open requests finish; whether all finished in time."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._service.stop)
            self._loop.call_soon_threadsafe(self._server.stop)
            self._thread.join(self._drain_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            # granian wakes the event loop from another thread for each request. asyncio's own loop writes to a pipe
            # each time; uvloop is cheaper.
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as failure:
            self._failure = failure

    async def _serve(self) -> None:
        self._server = Server(
            self._answer,
            address=self._host,
            port=self.port,
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=_SLOW_HEADERS_MS, max_buffer_size=_BUFFER_BYTES),
            backlog=_BACKLOG,
            backpressure=_most_connections(),
            websockets=False,
            log_enabled=False,
        )
        self._loop = asyncio.get_running_loop()
        await self._server.serve()

    async def _answer(self, scope: Any, protocol: Any) -> None:
        """granian calls this for each request."""
        began = time.perf_counter()
        hold = self._service.unsent.hold()
        try:
            status, size = await self._answered(scope, protocol, hold)
        finally:
            hold.release()
        if self._access is not None:
            took_ms = round((time.perf_counter() - began) * 1000, 3)
            access = AccessLine(now_ms(), scope.client, scope.method, scope.path, status, size, took_ms)
            self._access.note(access)

    async def _answered(self, scope: Any, protocol: Any, hold: Hold) -> tuple[int, int]:
        """The status, and how many bytes were sent. Returns once the client has read a large answer."""
        body = whole(protocol, scope.headers)
        answer = await self._service.answer(
            Request(scope.method, scope.path, scope.query_string, scope.headers, body, protocol.client_disconnect, hold)
        )
        if not isinstance(answer, Answer):
            return 200, await self._run_stream(answer, scope, protocol)
        if answer.status >= 400 and scope.method not in ("GET", "HEAD"):
            await pass_over(body, scope.headers)
        return answer.status, await self._send(answer, scope, protocol)

    async def _send(self, answer: Answer, scope: Any, protocol: Any) -> int:
        """How many bytes the body has."""
        if not answer.body:
            protocol.response_empty(answer.status, answer.headers)
        elif len(answer.body) < LARGE_BYTES or scope.method == "HEAD":
            protocol.response_bytes(answer.status, answer.headers, answer.body)
        else:
            # Sent as the client reads, so that clients that read nothing can't fill the memory.
            with suppress(Gone, Stalled):
                async with self._outlet(scope, protocol) as outlet:
                    outlet.open(answer.status, [*answer.headers, ("content-length", str(len(answer.body)))])
                    await outlet.send(answer.body)
        return len(answer.body)

    @asynccontextmanager
    async def _outlet(self, scope: Any, protocol: Any) -> AsyncIterator[BoundedStream]:
        # Not in the event loop: with thousands of connections it takes milliseconds.
        connection = await asyncio.to_thread(socket_of, scope.client, self.port)
        with closing(BoundedStream(protocol, connection, stall_s=self._stall_s)) as outlet:
            yield outlet

    async def _run_stream(self, stream: Streamed, scope: Any, protocol: Any) -> int:
        """How many bytes were sent until it ended."""
        sent = 0
        try:
            async with self._outlet(scope, protocol) as outlet:
                outlet.open(200, stream.headers)
                await stream.run(outlet)
                sent = outlet.sent_bytes
        except Gone:
            # Before the first byte was sent.
            protocol.response_empty(499, [])
        except Exception:
            _log.exception("a stream failed")
        finally:
            stream.close()
        return sent


def check_free(host: str, port: int) -> None:
    """Refuses an address that is taken or not ours: granian would silently share a taken port."""
    if is_ending(port):
        await_free(port, _log.warning)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As granian does: a port in TIME_WAIT is free for a listener if its last user set the same option.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as refusal:
            if refusal.errno == errno.EADDRINUSE:
                message = f"port {port} is taken: choose another with --port, or --port 0 for a free one"
            else:
                message = f"--host {host} --port {port}: {refusal.strerror or refusal}: give an address of this machine"
            raise BadInput(message) from None


def _most_connections() -> int:
    """How many connections are open at a time. Idle ones count too, so there are many more than requests.

    Half of the descriptors are left for the rest of the process, which needs some for everything.
    """
    return max(128, min(2048, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


def _free_port() -> int:
    with PortPicker() as picker:
        return picker.free()


def _answers(host: str, port: int) -> bool:
    # Not every system can connect to the address that means all addresses.
    reached = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104
    try:
        socket.create_connection((reached, port), timeout=1).close()
    except OSError:
        return False
    return True
