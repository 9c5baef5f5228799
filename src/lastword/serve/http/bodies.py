"""The body of a request, all of it or none: what breaks off must not be written as if that were all.

granian does not say that a body broke off: it ends early. `12345` of which two bytes came would be the value 12.
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
    """The parts of a body, as granian gives them; Refused at the end of one that broke off."""
    size, empty = 0, 0
    async for part in parts:
        size += len(part)
        empty += not part
        yield part
    length = headers.get("content-length")
    # Without a length it came in chunks. An empty part ends it; one more stands where a chunk was broken or never came,
    # or where trailers were, for which nobody has a use.
    if empty > 1 if length is None else size != int(length):
        raise Refused("body_broken", "the body ended before its end")


class Bodies:
    """What all bodies together may take, from their first byte until their writes are acknowledged."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held_bytes = 0

    @asynccontextmanager
    async def received(self, parts: AsyncIterable[bytes], headers: Any) -> AsyncIterator[bytes]:
        """All of a body; Refused as soon as it is too long or too slow, or with others too much."""
        most, length = self._limits.body_bytes, headers.get("content-length") or ""
        # Only a client that waits with its body would read the answer before it has sent it all.
        if headers.get("expect") and length.isdigit() and int(length) > most:
            raise _too_large(most)
        # Grows in place: a body of one-byte parts costs no more than any other.
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for chunk in parts:
                    body += chunk
                    self._held_bytes += len(chunk)
                    if len(body) > most:
                        raise _too_large(most)
                    if self._held_bytes > self._limits.waiting_bytes:
                        message = "too much waits to be written already"
                        raise Refused("too_many_writes", message)
        except TimeoutError:
            self._held_bytes -= len(body)
            raise Refused("body_too_slow", "the body did not come in time") from None
        except BaseException:
            self._held_bytes -= len(body)
            raise
        received = bytes(body)
        # Kept once while it is written.
        body.clear()
        try:
            yield received
        finally:
            self._held_bytes -= len(received)


def _too_large(most: int) -> Refused:
    return Refused("body_too_large", f"the body has more than {most} bytes")


async def pass_over(body: AsyncIterator[bytes], headers: Any) -> None:
    """Reads what is left of a body that nobody wants: not for long, and not much of it.

    granian ends the connection of a client that is still sending when it is answered, and such a client may lose the
    answer: it sees no reason, only that the connection broke.
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
