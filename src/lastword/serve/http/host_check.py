"""What a request must not bring: another site's name or origin, or a wish that a write can't fulfil."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Protocol

from lastword.serve.http.answers import Refused

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
# What a browser says of a page of ours, and of what a person typed; other clients say nothing.
_OUR_SITES = (None, "same-origin", "none")
_PORT = re.compile(r":[0-9]*$")


class RequestHeaders(Protocol):
    def get(self, name: str, /) -> str | None: ...


def check_plain(query: str, headers: RequestHeaders) -> None:
    """Refuses a write that asks for more than a write: nothing of it may be passed over in silence."""
    if query:
        raise Refused("bad_query", "a write takes no parameters", "send it without a query")
    if any(headers.get(name) is not None for name in ("if-match", "if-none-match", "if-unmodified-since")):
        message = "a write can't be made conditional: Kafka has no compare-and-set"
        raise Refused("not_conditional", message)


def check_host(host: str | None, names: Collection[str]) -> None:
    # A page of another site can't set the header Host, so a foreign name that points to this machine is seen there.
    if host is not None and _PORT.sub("", host.lower()) not in names:
        raise Refused("bad_host", "without tokens this server answers to its own names only")


def check_origin(headers: RequestHeaders) -> None:
    """Refuses a write that a browser sends for a page of another site, which has no token to give and needs none."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
    # A browser says so also where it sends no origin. Of the same site is any other port of this machine, too.
    if is_foreign or site not in _OUR_SITES:
        raise Refused("cross_origin", "a browser sent this write for a page of another address")
