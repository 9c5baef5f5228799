"""The body of a request, all of it or none: what breaks off must not be written as if that were all.

granian does not say that a body broke off: it ends early. `12345` of which two bytes came would be the value 12.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from lastword.serve.answers import Refused

_PASSED_OVER_BYTES = 1024 * 1024
_PASSED_OVER_S = 1.0


async def whole(parts: Any, headers: Any) -> AsyncIterator[bytes]:
    """The parts of a body, as granian gives them; Refused at the end of one that broke off."""
    size, empty = 0, 0
    async for part in parts:
        size += len(part)
        empty += not part
        yield part
    told = headers.get("content-length")
    # Without a length it came in chunks. An empty part ends it; one more stands where a chunk was broken or never came,
    # or where trailers were, for which nobody has a use.
    if empty > 1 if told is None else size != int(told):
        raise Refused(400, "body_broken", "the body ended before its end", "nothing was written: send it again")


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
