"""The service as an OpenAPI 3.1 document: every route with its methods, parameters, answers and refusals.

A pure function of the routes, the tables, the limits and the console's files. Rows have paths for each table, because a
table's codecs decide what a key and a value look like; what is the same for all of them is one path with the tables'
names as an enumeration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lastword import __version__
from lastword.console import PageFile
from lastword.core.shapes.cluster import ClusterAnswer, cluster_answer_with
from lastword.core.shapes.rows import SentPage
from lastword.serve.http.limits import Limits
from lastword.serve.http.routes import Content, Route
from lastword.serve.openapi.operations import Surroundings, operations, refusals
from lastword.serve.openapi.schemas import Described, DescribedGuest, Node, components


def document(
    routes: Iterable[Route[Any]],
    tables: Iterable[Described],
    limits: Limits,
    files: Mapping[str, PageFile],
    *,
    guarded: bool = False,
    guests: Iterable[DescribedGuest] = (),
) -> bytes:
    """The document as JSON; the routes are those of the guests that are present, too. Guarded: a token is needed."""
    guests = list(guests)
    examples = [example for guest in guests for example in guest.examples]
    around = Surroundings(list(tables), limits, files, [guest.name for guest in guests], examples, guarded)
    return msgspec.json.encode(_document(list(routes), around))


def _document(routes: list[Route[Any]], around: Surroundings) -> Node:
    paths: Node = {}
    for route in routes:
        for path, table in _paths(route, routes, around.tables):
            paths.setdefault(path, {}).update(operations(route, table, around))
    answers = [route.answer for route in routes if isinstance(route.answer, type)]
    cluster = cluster_answer_with(around.guests)
    shapes = [cluster if shape is ClusterAnswer else shape for shape in answers]
    schemas = components(shapes, around.tables, around.limits)
    document: Node = {
        "openapi": "3.1.0",
        "info": {
            "title": "lastword",
            "version": __version__,
            "description": "Log-compacted Kafka topics as tables. A path that is not here is answered with "
            "no_such_route, a method that its path does not have with method_not_allowed. Answers of 8 KiB and more "
            "are compressed with gzip for a client that takes it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "no_such_route": refusals(["no_such_route"])["404"],
                "method_not_allowed": refusals(["method_not_allowed"])["405"],
            },
        },
    }
    if around.guarded:
        about = "A token of the server's file; one for writing may also read."
        document["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": about}
        }
        document["security"] = [{"token": []}]
    return document


def _paths(
    route: Route[Any], routes: list[Route[Any]], tables: list[Described]
) -> Iterator[tuple[str, Described | None]]:
    """The paths of a route, each with the table whose codecs decide about it, or None."""
    if route.is_short:
        yield from ((route.path.replace("{short}", table.name), table) for table in tables if table.short)
    elif "{table}" in route.path and any(_is_by_codec(each) for each in routes if each.path == route.path):
        yield from ((route.path.replace("{table}", table.name), table) for table in tables)
    else:
        yield route.path, None


def _is_by_codec(route: Route[Any]) -> bool:
    return "{key}" in route.path or route.answer in (SentPage, Content.EVENTS)
