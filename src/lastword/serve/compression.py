"""gzip, for answers that are long enough for it to pay and clients that take it."""

from __future__ import annotations

import asyncio
import gzip

from lastword.serve.answers import Answer

# Less than a few packets goes out as fast as it is.
_LEAST_BYTES = 8192
# The first level takes a third of the time of the usual one, for a tenth more bytes.
_LEVEL = 1


def is_long(answer: Answer) -> bool:
    return len(answer.body) >= _LEAST_BYTES


async def compressed(answer: Answer, accepted: str | None) -> Answer:
    """A long answer as the client takes it; its tag is weak then, because the bytes are others."""
    headers = [*answer.headers, ("vary", "accept-encoding")]
    if accepted is None or not _takes_gzip(accepted):
        return answer._replace(headers=headers)
    # Not in the event loop: megabytes take milliseconds.
    body = await asyncio.to_thread(gzip.compress, answer.body, _LEVEL, mtime=0)
    told = [(name, f"W/{text}" if name == "etag" else text) for name, text in headers]
    return Answer(answer.status, [*told, ("content-encoding", "gzip")], body)


def _takes_gzip(accepted: str) -> bool:
    """Whether a list of codings like `br, gzip;q=0.5` has gzip, or all that it does not name, and wants it."""
    wanted = {}
    for part in accepted.lower().split(","):
        name, _, quality = (piece.strip() for piece in part.partition(";"))
        wanted[name] = not quality or quality.removeprefix("q=").strip("0.") != ""
    return wanted.get("gzip", wanted.get("*", False))
