"""The body of a request, all of it or none: what breaks off must not be written as if that were all.

granian does not say that a body broke off: it ends early. `12345` of which two bytes came would be the value 12.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from lastword.serve.answers import Refused


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
