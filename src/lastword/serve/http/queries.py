"""The query parameters of routes, one Struct for each set, and the parser of a query."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import Meta, Struct

from lastword.serve.http.answers import Refused
from lastword.serve.http.limits import Limits

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

_Query = TypeVar("_Query", bound=Struct)
_RESUME = "The id of the last event that was taken: those after it are read again from Kafka."


class NoQuery(Struct, frozen=True):
    """No parameter at all."""


class PositionQuery(Struct, frozen=True):
    min_position: Annotated[
        str | None, Meta(description="Waits until the table has everything before this position.")
    ] = None


class PageQuery(PositionQuery, frozen=True):
    limit: Annotated[str | None, Meta(description="How many rows a page has at most.")] = None
    cursor: Annotated[
        str | None,
        Meta(description="The end of the page before, as it was given, with the same prefix, start and end."),
    ] = None


class RowsQuery(PageQuery, frozen=True):
    prefix: Annotated[str | None, Meta(description="Keys that begin with this.")] = None
    start: Annotated[str | None, Meta(description="Keys from this one on.")] = None
    end: Annotated[str | None, Meta(description="Keys before this one.")] = None


class ChangesQuery(Struct, frozen=True):
    after: Annotated[str | None, Meta(description=_RESUME)] = None


class AllChangesQuery(ChangesQuery, frozen=True):
    tables: Annotated[str | None, Meta(description="All of them where it is left out.")] = None


def parsed(query: str, shape: type[_Query], limits: Limits) -> _Query:
    """The parameters; Refused for a name that the route does not have, so that no misspelt name is ignored."""
    if len(query) > limits.query_bytes:
        raise Refused("query_too_long", f"the query has more than {limits.query_bytes} bytes")
    names = shape.__struct_fields__
    parameters: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, _, text = part.partition("=")
        if name not in names:
            hint = f"this path takes: {', '.join(sorted(names)) or 'none'}"
            raise Refused("bad_query", f"this path has no parameter {name[:60]!r}", hint)
        if name in parameters:
            raise Refused("bad_query", f"{name} is given twice", "keep one of them")
        parameters[name] = _decoded(name, text)
    return shape(**parameters)


def _decoded(name: str, text: str) -> str:
    try:
        if _BAD_ESCAPE.search(text):
            raise ValueError
        # A plus is a space, as forms write it.
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except ValueError:
        hint = "write a % as %25, a space as %20, and so on"
        raise Refused("bad_query", f"{name} is not percent-encoded UTF-8", hint) from None
