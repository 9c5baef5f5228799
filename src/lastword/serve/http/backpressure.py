"""Where a stream's bytes leave: to a client that takes them, and to no other.

granian takes whatever a stream gives it and keeps it in memory until its client reads. So a stream looks at the
connection's socket itself, through a descriptor of its own: bytes are given only while the socket takes some, and the
connection of a client that takes none for too long is ended for good. Alternatives and what breaks with granian:
docs/decisions/0019-slow-readers.md.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
from contextlib import suppress
from typing import Any, Protocol

# Less than a socket has room for when it says that it has some.
_SLICE_BYTES = 64 * 1024
# More than this is given only after granian's own thread had a moment to write it.
_UNSEEN_BYTES = 256 * 1024
_MOMENT_S = 0.002
# The system's buffer for one stream, which would otherwise grow to several megabytes for each client that is away.
_SOCKET_BYTES = 256 * 1024


class Gone(Exception):
    """The client ended the connection."""


class Stalled(Exception):
    """The client took nothing for too long, so its connection was ended."""


class BoundedStream:
    """One stream: opened with its headers, and closed by its maker."""

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
        self._looking = select.poll()
        self._looking.register(self._socket, select.POLLOUT)
        self._stall_s = stall_s
        self._unseen = 0
        self.sent_bytes = 0

    def open(self, status: int, headers: list[tuple[str, str]]) -> None:
        self._transport = self._protocol.response_stream(status, headers)

    async def send(self, content: bytes) -> None:
        """Returns when the content is on its way; Gone or Stalled when nobody takes it."""
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
        """Returns when the socket takes bytes, and has taken what was given before."""
        while True:
            if self._unseen >= _UNSEEN_BYTES:
                await asyncio.sleep(_MOMENT_S)
                self._unseen = 0
            if self._looking.poll(0):
                return
            await self._room()
            # granian is woken by the same room, for what it still holds: that goes first.
            self._unseen = _UNSEEN_BYTES

    async def until_gone(self) -> None:
        await self._protocol.client_disconnect()

    def cut(self) -> None:
        """Ends the connection where it is: what was sent so far can't be taken for a whole answer."""
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
    """An answer that is sent as it is made: run once, and closed in any case."""

    @property
    def headers(self) -> list[tuple[str, str]]: ...

    async def run(self, outlet: BoundedStream) -> None:
        """Returns when the stream has ended, however it did."""

    def close(self) -> None: ...


def socket_of(client: str, port: int) -> socket.socket:
    """The connection of a client to our port, among this process's own; to be closed. Gone where it is not."""
    host, _, client_port = client.rpartition(":")
    wanted = (host.strip("[]"), int(client_port), port)
    for entry in os.listdir("/dev/fd"):  # noqa: PTH208 - a Path for each descriptor takes ten times as long
        if _ends_of(int(entry)) == wanted:
            # Asked again of a descriptor of our own: the other one may be another connection's by now.
            mine = socket.socket(fileno=os.dup(int(entry)))
            if _ends_of(mine.fileno()) == wanted:
                return mine
            mine.close()
    raise Gone


def _ends_of(descriptor: int) -> tuple[str, int, int] | None:
    """The peer's address and port, and our port; None for what is no connection."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        looked_at = socket.socket(fileno=descriptor)
    except OSError:
        return None
    try:
        host, client_port, *_ = looked_at.getpeername()
        return host, client_port, looked_at.getsockname()[1]
    except (OSError, ValueError):
        return None
    finally:
        looked_at.detach()
