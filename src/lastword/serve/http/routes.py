"""A row of the table of routes, and the router that finds the row of a request.

The path comes decoded: granian's fast interface gives no other. granian replaces bytes that are not UTF-8 by U+FFFD, so
a path with that character is refused: it could name another key. Nothing here resolves `..` or `//`, and no part of a
path becomes the name of a file: names are looked up among the known names, and the rest is a key. A name is never
empty: `/tables//rows` and `/tables/` are no routes.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from lastword.serve.http.answers import Answer, Refused
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.queries import NoQuery

# (request, query, *names in the path) -> the answer, or a stream to be run
Handler = Callable[..., Awaitable[Answer | Streamed]]
# The methods that routes take. The metrics count all other methods together.
METHODS = frozenset({"GET", "HEAD", "PUT", "DELETE", "POST"})
# A key and the name of a file may contain slashes: they are the rest of the path.
_REST = ("key", "file")
_NAME = re.compile(r"{(\w+)}")

_Parts_contra = TypeVar("_Parts_contra", contravariant=True)


class Access(enum.Enum):
    """What the token of a request must allow, on a server with tokens."""

    # Without a token: for load balancers, and for a browser whose user has not entered a token yet.
    OPEN = "open"
    READ = "read"
    WRITE = "write"


class Content(enum.Enum):
    """An answer that is no JSON object of a fixed shape."""

    VALUE = "a bare value"
    VALUES = "an array of bare values"
    EVENTS = "server-sent events"
    FILE = "a file of the console"
    TEXT = "text"
    DOCUMENT = "the OpenAPI document"


@dataclass(frozen=True)
class Route(Generic[_Parts_contra]):
    """A row of the table of routes. GET is answered for HEAD, too, without the body."""

    # The label in the metrics, the same for all methods of a path.
    name: str
    method: str
    # `{name}` is a segment that is not empty, `{key}` and `{file}` are the rest. A path that begins with `/{short}` is
    # one of each table with short routes.
    path: str
    # The handler, which gets the names in the path in their order.
    handler: Callable[[_Parts_contra], Handler]
    # For the documentation: the first sentence is the summary.
    doc: str
    # The Struct of the answer; a guest may give the content of OpenAPI by media type.
    answer: type[Struct] | Content | Mapping[str, Any]
    query: type[Struct] = NoQuery
    access: Access = Access.READ
    # The error codes that only some routes have.
    codes: tuple[str, ...] = ()

    @property
    def is_short(self) -> bool:
        return self.path.startswith("/{short}")


class Bound(NamedTuple):
    """A route with the handler that answers it."""

    route: Route[Any]
    handler: Handler
    # The parameters of a request without a query.
    no_query: Struct


@dataclass(frozen=True)
class Endpoint:
    """All methods of one path."""

    name: str
    is_short: bool
    methods: Mapping[str, Bound]

    def bound(self, method: str) -> Bound:
        """The route of a method; for any other method Refused, with the allowed ones."""
        found = self.methods.get(method)
        if found is None:
            allowed = ", ".join(self.methods)
            raise Refused(
                "method_not_allowed",
                f"this path does not take the method {method[:20]}",
                f"use {allowed}",
                [("allow", allowed)],
            )
        return found


NOWHERE = Endpoint("nowhere", False, {})

# An endpoint, and the names in the path.
Match = tuple[Endpoint, tuple[str, ...]]


class Router:
    """Finds the endpoint of a path by dictionaries of its literal segments."""

    def __init__(self, routes: Iterable[Route[Any]], parts: Any, short: Collection[str] = ()) -> None:
        self._short = short
        # Paths without a name.
        self._fixed: dict[str, Match] = {}
        # /first/{name}, /first/{name}/third
        self._named: dict[tuple[str, ...], Endpoint] = {}
        # /first/{name}/third/{rest}
        self._named_with_rest: dict[tuple[str, str], Endpoint] = {}
        # /first/{rest}, after names that come before the rest.
        self._rest: dict[str, Match] = {}
        by_path: dict[str, list[Route[Any]]] = {}
        for route in routes:
            by_path.setdefault(route.path, []).append(route)
        for path, rows in by_path.items():
            self._add(path, _endpoint(rows, parts))

    def match(self, path: str) -> Match:
        """The endpoint of a decoded path, and the names in the path; Refused if no route has the path."""
        if "\ufffd" in path:
            raise Refused("bad_path", "the path is not UTF-8, or has the character U+FFFD")
        parts = path.split("/", 4)
        count = len(parts)
        if count > 2 and parts[2] and not parts[0]:
            # First, because nearly every request is a point read.
            if count == 5:
                endpoint = self._named_with_rest.get((parts[1], parts[3]))
                if endpoint is not None:
                    return endpoint, (parts[2], parts[4])
            elif (endpoint := self._named.get((parts[1], *parts[3:]))) is not None:
                return endpoint, (parts[2],)
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed
        if count > 2 and not parts[0] and (found := self._rest.get(parts[1])) is not None:
            endpoint, names = found
            return endpoint, (*names, path[len(parts[1]) + 2 :])
        raise Refused("no_such_route", "nothing is served at this path")

    def is_short(self, path: str) -> bool:
        """Whether the path begins with a table that has short routes, even if no route has the path."""
        root, _, rest = path.partition("/")
        return not root and rest.partition("/")[0] in self._short

    def _add(self, path: str, endpoint: Endpoint) -> None:
        if endpoint.is_short:
            for table in self._short:
                self._add_one(path.replace("{short}", table), endpoint, (table,))
        else:
            self._add_one(path, endpoint, ())

    def _add_one(self, path: str, endpoint: Endpoint, names: tuple[str, ...]) -> None:
        segments = path.split("/")[1:]
        named = [(match[1] if (match := _NAME.fullmatch(segment)) else None) for segment in segments]
        match named:
            case [*literals] if not any(literals):
                self._fixed[path] = (endpoint, names)
            case [None, name] if name in _REST:
                self._rest[segments[0]] = (endpoint, names)
            case [None, _] | [None, _, None]:
                self._named[(segments[0], *segments[2:])] = endpoint
            case [None, _, None, name] if name in _REST:
                self._named_with_rest[segments[0], segments[2]] = endpoint
            case _:
                raise NotImplementedError(path)


def first_segments(routes: Iterable[Route[Any]]) -> frozenset[str]:
    """The first segments of all paths: a table of such a name can't have short routes."""
    return frozenset(route.path.split("/")[1] for route in routes if not route.is_short)


def _endpoint(rows: list[Route[Any]], parts: Any) -> Endpoint:
    methods: dict[str, Bound] = {}
    for route in rows:
        if route.method in methods:
            raise ValueError(f"two routes for {route.method} {route.path}")
        bound = Bound(route, route.handler(parts), route.query())
        methods[route.method] = bound
        if route.method == "GET":
            methods["HEAD"] = bound
    return Endpoint(rows[0].name, rows[0].is_short, methods)
