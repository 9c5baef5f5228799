"""A request as every handler gets it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import NamedTuple

from lastword.serve.http.host_check import RequestHeaders
from lastword.serve.http.unsent_answers import Hold


class Request(NamedTuple):
    method: str
    # Decoded: see routes.py.
    path: str
    # Still percent-encoded.
    query: str
    headers: RequestHeaders
    body: AsyncIterable[bytes]
    # Returns when the client has left.
    gone: Callable[[], Awaitable[object]]
    # The memory that the answer takes; the server releases it once the client has read the answer.
    hold: Hold
