"""Refuses requests with the name or origin of another site, and writes with conditions."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Protocol

from lastword.serve.http.answers import Refused

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
# Values of Sec-Fetch-Site for our own page and for a typed address; None for clients that are no browsers.
_OUR_SITES = (None, "same-origin", "none")
_PORT = re.compile(r":[0-9]*$")


class RequestHeaders(Protocol):
    def get(self, name: str, /) -> str | None: ...


def check_plain(query: str, headers: RequestHeaders) -> None:
    """Refuses a write with parameters or conditions: ignoring them would mislead the client."""
    if query:
        raise Refused("bad_query", "a write takes no parameters", "send the write without a query")
    if any(headers.get(name) is not None for name in ("if-match", "if-none-match", "if-unmodified-since")):
        message = "a write can't be made conditional: Kafka has no compare-and-set"
        raise Refused("not_conditional", message)


def check_host(host: str | None, names: Collection[str]) -> None:
    # A page can't set the header Host. So a foreign name that resolves to this machine shows in the header.
    if host is not None and _PORT.sub("", host.lower()) not in names:
        raise Refused("bad_host", "a server without tokens accepts only its own names in the header Host")


def check_origin(headers: RequestHeaders) -> None:
    """Refuses a write that a browser sends for a page of another site: without tokens nothing else would stop it."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
    # A browser may send Sec-Fetch-Site without Origin. "same-site" is refused: it may be another port of this machine.
    if is_foreign or site not in _OUR_SITES:
        raise Refused("cross_origin", "a browser sent this write for a page of another address")
