"""Reads the whole body of a request, or refuses it.

granian does not report a body that breaks off: the body just ends early. `12345`, cut after two bytes, would be
written as the value 12.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from lastword.serve.http.answers import Refused
from lastword.serve.http.limits import Limits

_PASSED_OVER_BYTES = 1024 * 1024
_PASSED_OVER_S = 1.0


async def whole(parts: Any, headers: Any) -> AsyncIterator[bytes]:
    """The parts of a body as granian gives them; Refused at the end of a body that broke off."""
    size, empty = 0, 0
    async for part in parts:
        size += len(part)
        empty += not part
        yield part
    length = headers.get("content-length")
    # A body without a length comes in chunks, and an empty part ends it. A second empty part means a chunk that was
    # broken or never came. Trailers give one too; nothing here needs trailers.
    if empty > 1 if length is None else size != int(length):
        raise Refused("body_broken", "the connection ended before the whole body had come")


class Bodies:
    """The bodies of all requests, whose memory is bounded from the first byte until the writes are acknowledged."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held_bytes = 0

    @asynccontextmanager
    async def received(self, parts: AsyncIterable[bytes], headers: Any) -> AsyncIterator[bytes]:
        """The whole body; Refused as soon as the body is too long or too slow, or all bodies together are too large."""
        most, length = self._limits.body_bytes, headers.get("content-length") or ""
        # Only a client that waits before it sends the body reads an answer that comes early.
        if headers.get("expect") and length.isdigit() and int(length) > most:
            raise _too_large(most)
        # A bytearray grows in place, so a body of one-byte parts costs no more than any other.
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for chunk in parts:
                    body += chunk
                    self._held_bytes += len(chunk)
                    if len(body) > most:
                        raise _too_large(most)
                    if self._held_bytes > self._limits.waiting_bytes:
                        raise Refused("too_many_writes", "the bodies of waiting writes fill the memory for them")
        except TimeoutError:
            self._held_bytes -= len(body)
            raise Refused("body_too_slow", "the body did not come in time") from None
        except BaseException:
            self._held_bytes -= len(body)
            raise
        received = bytes(body)
        # Frees the second copy while the first one is written.
        body.clear()
        try:
            yield received
        finally:
            self._held_bytes -= len(received)


def _too_large(most: int) -> Refused:
    return Refused("body_too_large", f"the body has more than {most} bytes")


async def pass_over(body: AsyncIterator[bytes], headers: Any) -> None:
    """Reads and drops the rest of a body, for a second and a megabyte at most.

    Otherwise granian ends the connection of a client that is still sending. Such a client may lose the answer, and sees
    only that the connection broke.
    """
    if headers.get("expect"):
        return
    left = _PASSED_OVER_BYTES
    with suppress(Refused, TimeoutError):
        async with asyncio.timeout(_PASSED_OVER_S):
            async for part in body:
                left -= len(part)
                if left < 0:
                    return
