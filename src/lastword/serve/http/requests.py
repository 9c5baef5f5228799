"""A request as every handler gets it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import NamedTuple

from lastword.serve.http.host_check import RequestHeaders
from lastword.serve.http.unsent_answers import Hold


class Request(NamedTuple):
    method: str
    # Decoded, as routes.py says.
    path: str
    # As it was sent.
    query: str
    headers: RequestHeaders
    body: AsyncIterable[bytes]
    # Returns when the client has left.
    gone: Callable[[], Awaitable[object]]
    # Of the service's `unsent`; whoever asks releases it when the answer was taken.
    hold: Hold
