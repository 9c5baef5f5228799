"""gzip for long answers, to clients that accept it."""

from __future__ import annotations

import asyncio
import gzip
import zlib

from lastword.serve.http.answers import Answer
from lastword.serve.http.etags import weak

# A shorter answer fits in a few packets: compressing it would gain no time.
_LEAST_BYTES = 8192
# Level 1 takes a third of the time of the default level, for a tenth more bytes.
_LEVEL = 1
# zlib's number for a stream in the format of gzip.
_AS_GZIP = 16 + zlib.MAX_WBITS


VARIES = ("vary", "accept-encoding")
GZIPPED = ("content-encoding", "gzip")


def is_long(answer: Answer) -> bool:
    return len(answer.body) >= _LEAST_BYTES


async def compressed(answer: Answer, accepted: str | None) -> Answer:
    """The answer, compressed if the client accepts gzip. The entity tag is then weak, because the bytes differ."""
    headers = [*answer.headers, VARIES]
    if not takes_gzip(accepted):
        return answer._replace(headers=headers)
    # Not in the event loop: megabytes take milliseconds.
    body = await asyncio.to_thread(gzip.compress, answer.body, _LEVEL, mtime=0)
    sent = [(name, weak(text) if name == "etag" else text) for name, text in headers]
    return Answer(answer.status, [*sent, GZIPPED], body)


class GzipParts:
    """Compresses an answer that is made part by part."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _AS_GZIP)

    def compressed(self, part: bytes, *, is_last: bool) -> bytes:
        """The bytes to send after this part; some bytes of the part may come with the next one."""
        done = self._stream.compress(part)
        return done + self._stream.flush() if is_last else done


def takes_gzip(accepted: str | None) -> bool:
    """Whether an Accept-Encoding like `br, gzip;q=0.5` allows gzip, by its name or by `*`."""
    wanted = {}
    for part in (accepted or "").lower().split(","):
        name, _, quality = (piece.strip() for piece in part.partition(";"))
        wanted[name] = not quality or quality.removeprefix("q=").strip("0.") != ""
    return wanted.get("gzip", wanted.get("*", False))
