"""Sends a stream only as fast as its client reads.

granian keeps all bytes of a stream in memory until the client reads them. So a stream polls the socket of the
connection through its own descriptor, and passes bytes on only while the socket has room. A client that reads nothing
for too long loses its connection. Alternatives, and what breaks with granian: docs/decisions/0019-slow-readers.md.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
from contextlib import suppress
from typing import Any, Protocol

# Less than the room that a socket has when it reports any.
_SLICE_BYTES = 64 * 1024
# After this many bytes granian's own thread gets a moment to write them.
_UNSEEN_BYTES = 256 * 1024
_MOMENT_S = 0.002
# The system's buffer for one stream: without a limit it grows to megabytes for each client that does not read.
_SOCKET_BYTES = 256 * 1024


class Gone(Exception):
    """The client ended the connection."""


class Stalled(Exception):
    """The client read nothing for too long, so the server ended its connection."""


class BoundedStream:
    """The bytes of one stream on their way to its client. Whoever makes it calls `open` first and `close` last."""

    def __init__(self, protocol: Any, connection: socket.socket, *, stall_s: float) -> None:
        self._protocol = protocol
        self._transport: Any = None
        self._socket = connection
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        except OSError:
            # The client has left.
            self._socket.close()
            raise Gone from None
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLOUT)
        self._stall_s = stall_s
        self._unseen = 0
        self.sent_bytes = 0

    def open(self, status: int, headers: list[tuple[str, str]]) -> None:
        self._transport = self._protocol.response_stream(status, headers)

    async def send(self, content: bytes) -> None:
        """Returns once granian has the content; Gone or Stalled if the client does not read."""
        for start in range(0, len(content), _SLICE_BYTES):
            piece = content[start : start + _SLICE_BYTES] if len(content) > _SLICE_BYTES else content
            await self._until_taken()
            try:
                await self._transport.send_bytes(piece)
            except Exception:
                # granian's own error for this has no public name.
                raise Gone from None
            self._unseen += len(piece)
            self.sent_bytes += len(piece)

    async def _until_taken(self) -> None:
        """Returns once the socket has room, and has taken the bytes of earlier calls."""
        while True:
            if self._unseen >= _UNSEEN_BYTES:
                await asyncio.sleep(_MOMENT_S)
                self._unseen = 0
            if self._poll.poll(0):
                return
            await self._room()
            # The same room wakes granian, whose bytes must leave first.
            self._unseen = _UNSEEN_BYTES

    async def until_gone(self) -> None:
        await self._protocol.client_disconnect()

    def cut(self) -> None:
        """Breaks the connection, so that the client can't take a part for the whole answer."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Event()
        loop.add_writer(self._socket, room.set)
        try:
            async with asyncio.timeout(self._stall_s):
                await room.wait()
        except TimeoutError:
            self.cut()
            raise Stalled from None
        finally:
            loop.remove_writer(self._socket)


class Streamed(Protocol):
    """An answer that is made while it is sent. The server calls `run` once, and `close` in any case."""

    @property
    def headers(self) -> list[tuple[str, str]]: ...

    async def run(self, outlet: BoundedStream) -> None:
        """Returns when the stream has ended, for whatever reason."""

    def close(self) -> None: ...


def socket_of(client: str, port: int) -> socket.socket:
    """A copy of the socket between a client and our port, to be closed by the caller; Gone if there is none."""
    host, _, client_port = client.rpartition(":")
    wanted = (host.strip("[]"), int(client_port), port)
    for entry in os.listdir("/dev/fd"):  # noqa: PTH208 - a Path for each descriptor takes ten times as long
        if _ends_of(int(entry)) == wanted:
            # Checked again on our copy: meanwhile the descriptor may belong to another connection.
            mine = socket.socket(fileno=os.dup(int(entry)))
            if _ends_of(mine.fileno()) == wanted:
                return mine
            mine.close()
    raise Gone


def _ends_of(descriptor: int) -> tuple[str, int, int] | None:
    """The address and port of the peer, and our port; None if the descriptor is not a connection."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        other = socket.socket(fileno=descriptor)
    except OSError:
        return None
    try:
        host, client_port, *_ = other.getpeername()
        return host, client_port, other.getsockname()[1]
    except (OSError, ValueError):
        return None
    finally:
        other.detach()
