"""Which thing an address names, what may be done with it, and what may stand in its query.

The path comes decoded: granian's fast interface gives no other. It puts U+FFFD where bytes were not UTF-8, so a path
with that character is refused: it may stand for another key than the one meant. Nothing here resolves `..` or `//`, and
no part of a path ever names a file: a name is looked up among those that are known, and the rest is a key. An empty
name is no name: `/tables//rows` and `/tables/` are no routes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from lastword.serve.http.answers import Refused
from lastword.serve.http.limits import Limits

Kind = Literal[
    "tables",
    "table",
    "count",
    "rows",
    "row",
    "changes",
    "all changes",
    "short rows",
    "short row",
    "short count",
    "health",
    "ready",
    "metrics",
    "openapi",
    "cluster",
    "topic",
    "compact",
    "console",
    "console file",
    "guest",
    "nowhere",
]
# What a load balancer asks for, and a browser before its user has given a token: they tell nothing that needs one.
OPEN_KINDS: frozenset[Kind] = frozenset({"health", "ready", "console", "console file"})

_READS = ("GET", "HEAD")
METHODS = frozenset({"GET", "HEAD", "PUT", "DELETE", "POST"})
_WRITES: dict[Kind, tuple[str, ...]] = {"row": ("PUT", "DELETE"), "rows": ("POST",), "compact": ("POST",)}
# What is only done, and shows nothing.
_ONLY_WRITES: frozenset[Kind] = frozenset({"compact"})
# What asks for a page; without, the short form gives all rows.
PAGING = frozenset({"limit", "cursor"})
_PARAMETERS: dict[Kind, frozenset[str]] = {
    "table": frozenset({"min_position"}),
    "count": frozenset({"min_position"}),
    "rows": PAGING | {"prefix", "start", "end", "min_position"},
    "row": frozenset({"min_position"}),
    "changes": frozenset({"after"}),
    "all changes": frozenset({"tables", "after"}),
    "short rows": PAGING | {"min_position"},
    "short row": frozenset({"min_position"}),
    "short count": frozenset({"min_position"}),
}
_FIXED: dict[str, Kind] = {
    "/": "console",
    "/tables": "tables",
    "/changes": "all changes",
    "/health": "health",
    "/ready": "ready",
    "/openapi.json": "openapi",
    "/metrics": "metrics",
    "/cluster": "cluster",
}
# What stands before a name, and after it.
_OF_ONE: dict[tuple[str, ...], Kind] = {
    ("tables",): "table",
    ("tables", "rows"): "rows",
    ("tables", "count"): "count",
    ("tables", "changes"): "changes",
    ("topics",): "topic",
    ("topics", "compact"): "compact",
}
_FILES = "/console/"
# The first words of paths: a table of such a name can't have short routes.
RESERVED = frozenset({"console", *(path[1:] for path in _FIXED), *(names[0] for names in _OF_ONE)})
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Route(NamedTuple):
    kind: Kind
    table: str = ""
    # As it stands in the address; the table's key codec says which bytes it means.
    key: str = ""
    # What else is named: a topic, a file of the console, the kind of a guest's route.
    name: str = ""

    @property
    def is_short(self) -> bool:
        return self.kind.startswith("short")

    @property
    def label(self) -> str:
        """The route in metrics."""
        return self.name if self.kind == "guest" else self.kind


NOWHERE = Route("nowhere")


def route_of(path: str, short: Collection[str] = ()) -> Route:
    """The route of a decoded path; Refused where there is none. The tables in `short` have short routes, too."""
    if "\ufffd" in path:
        raise Refused(
            "bad_path",
            "the path is not UTF-8, or has the character U+FFFD, which stands for that",
        )
    parts = path.split("/", 4)
    # First and without a pattern, because nearly every request is a point read.
    if len(parts) == 5 and parts[3] == "rows" and parts[1] == "tables" and parts[2] and not parts[0]:
        return Route("row", parts[2], parts[4])
    kind = _FIXED.get(path)
    if kind is not None:
        return Route(kind)
    named = len(parts) in (3, 4) and not parts[0] and parts[2]
    if named and (kind := _OF_ONE.get((parts[1], *parts[3:]))) is not None:
        return Route(kind, name=parts[2]) if parts[1] == "topics" else Route(kind, parts[2])
    if path.startswith(_FILES):
        return Route("console file", name=path[len(_FILES) :])
    if (table := short_table(path, short)) is not None:
        return _short_route(table, path[len(table) + 2 :] if len(parts) > 2 else None)
    raise Refused(
        "no_such_route",
        "nothing is served at this path",
    )


def short_table(path: str, short: Collection[str]) -> str | None:
    """The table among those with short routes whose name begins the path; None if there is none."""
    root, _, rest = path.partition("/")
    name = rest.partition("/")[0]
    return name if not root and name in short else None


def _short_route(table: str, rest: str | None) -> Route:
    """`rest` is what follows `/TABLE/`, or None for `/TABLE` itself."""
    if rest is None:
        return Route("short rows", table)
    return Route("short count", table) if rest == "count" else Route("short row", table, rest)


def is_write(route: Route, method: str) -> bool:
    """Whether a method writes; Refused, with those that are, when it is not for this route."""
    reads = () if route.kind in _ONLY_WRITES else _READS
    if method in reads:
        return False
    writes = _WRITES.get(route.kind, ())
    if method not in writes:
        told = ", ".join((*reads, *writes))
        raise Refused("method_not_allowed", f"{method[:20]} is not for this path", f"use {told}", [("allow", told)])
    return True


def parameters(route: Route, query: str, limits: Limits) -> dict[str, str]:
    """The query by name; Refused for a name that this route does not know: a misspelt one must not pass in silence."""
    if len(query) > limits.query_bytes:
        raise Refused("query_too_long", f"the query has more than {limits.query_bytes} bytes")
    known, given = _PARAMETERS.get(route.kind, frozenset()), {}
    for part in filter(None, query.split("&")):
        name, _, text = part.partition("=")
        if name not in known:
            told = ", ".join(sorted(known)) or "none"
            raise Refused("bad_query", f"no parameter {name[:60]!r} here", f"this path takes: {told}")
        if name in given:
            raise Refused("bad_query", f"{name} is given twice", "keep one of them")
        given[name] = _decoded(name, text)
    return given


def _decoded(name: str, text: str) -> str:
    try:
        if _BAD_ESCAPE.search(text):
            raise ValueError
        # Where a space may be a plus, as forms write it.
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except ValueError:
        raise Refused(
            "bad_query", f"{name} is not percent-encoded UTF-8", "write a % as %25, a space as %20, and so on"
        ) from None
