"""The service as an OpenAPI 3.1 document: every route with its methods, parameters, answers and refusals.

A pure function of the tables, the limits and the console's files. Rows have paths for each table, because a table's
codecs decide what a key and a value look like; what is the same for all of them is one path with the tables' names as
an enumeration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lastword import __version__
from lastword.console import PageFile
from lastword.serve.http.limits import Limits
from lastword.serve.openapi.change_paths import all_changes_path, changes_path
from lastword.serve.openapi.cluster_paths import cluster_paths, cluster_schemas
from lastword.serve.openapi.console_paths import console_paths
from lastword.serve.openapi.operations import (
    BODY,
    FRESH,
    JSON,
    LINES,
    LINK,
    READS,
    TAGGED,
    WAITS,
    WRITES,
    completed,
    constant,
    done,
    if_none_match,
    min_position,
    operation,
    paging,
    reading,
    refusals,
)
from lastword.serve.openapi.schemas import (
    Described,
    DescribedGuest,
    Node,
    bare_value,
    components,
    example_row,
    example_standing,
    example_value,
    key_parameter,
    ref,
    row_name,
    value_schema,
)


def document(
    tables: Iterable[Described],
    limits: Limits,
    files: Mapping[str, PageFile],
    *,
    guarded: bool = False,
    guests: Iterable[DescribedGuest] = (),
) -> bytes:
    """The document as JSON; guarded: where a token is needed."""
    return msgspec.json.encode(_document(list(tables), limits, files, list(guests), guarded=guarded))


def _document(
    tables: list[Described],
    limits: Limits,
    files: Mapping[str, PageFile],
    guests: list[DescribedGuest],
    *,
    guarded: bool,
) -> Node:
    names = [guest.name for guest in guests]
    paths = _paths_of_all(tables) | all_changes_path(tables) | cluster_paths(names) | console_paths(files)
    for table in tables:
        paths |= _paths_of_rows(table, limits) | changes_path(table)
        if table.short:
            paths |= _short_paths(table, limits)
    present = [guest for guest in guests if guest.is_present]
    guest_paths = {route.path: route.operations for guest in present for route in guest.routes}
    guest_schemas = {name: schema for guest in present for name, schema in guest.schemas.items()}
    told: Node = {
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
        "paths": completed(paths | guest_paths, guarded=guarded),
        "components": {
            "schemas": components(tables, limits) | cluster_schemas(names) | guest_schemas,
            "responses": {
                "no_such_route": refusals(["no_such_route"])["404"],
                "method_not_allowed": refusals(["method_not_allowed"])["405"],
            },
        },
    }
    if guarded:
        about = "A token of the server's file; one for writing may also read."
        told["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": about}}
        told["security"] = [{"token": []}]
    return told


def _paths_of_all(tables: list[Described]) -> Node:
    """What is not a matter of codecs."""
    listed = {"type": "object", "properties": {"tables": {"type": "array", "items": ref("standing")}}}
    named = {
        "name": "table",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "enum": [table.name for table in tables]},
    }
    of_one = ("bad_path", "no_such_table")
    return {
        "/health": reading("health", "The process answers", done(constant({"status": "ok"})), is_open=True),
        "/ready": reading(
            "ready", "All of it is ready", done(constant({"ready": True})), codes=("not_ready",), is_open=True
        ),
        "/openapi.json": reading(
            "openapi", "This document", done({"type": "object", "required": ["openapi", "paths"]})
        ),
        "/metrics": reading(
            "metrics",
            "What Prometheus is told",
            {"description": "Its text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        ),
        "/tables": reading(
            "tables",
            "What is served, and how it stands",
            done({**listed, "required": ["tables"]}, {"tables": [example_standing(table) for table in tables[:1]]}),
        ),
        "/tables/{table}": reading(
            "table",
            "How a table stands",
            done(ref("standing"), *map(example_standing, tables[:1])),
            parameters=[named, min_position()],
            codes=(*of_one, *WAITS),
        ),
        "/tables/{table}/count": reading(
            "count",
            "How many rows a table has, exactly",
            done(ref("count"), {"count": 10}, headers=FRESH),
            parameters=[named, min_position()],
            codes=(*of_one, *READS),
        ),
    }


def _paths_of_rows(table: Described, limits: Limits) -> Node:
    codec, name = table.key_codec, table.name
    key = key_parameter(codec, limits, "key", "path")
    in_key = ("bad_path", "bad_key", "key_too_long")
    bounds = ("prefix", "start", "end") if codec.name in ("string", "bytes") else ("start", "end")
    page = {"rows": [example_row(table)], "next": None, "position": "0:18,1:5,2:18"}
    line = {"key": example_row(table)["key"], "value": example_value(table)}
    place = done(ref("place"), {"partition": 2, "offset": 17, "position": "2:18"})
    place["links"] = {
        "read": {
            "operationId": f"get_{name}_row",
            "parameters": {"key": "$request.path.key", "min_position": "$response.body#/position"},
            "description": "Read your own write, on any instance.",
        }
    }
    writing: Node = {
        "put": operation(
            f"put_{name}_row",
            "Write a value; null is one",
            place,
            parameters=[key],
            body=(JSON, {"schema": value_schema(table.value_codec), "example": example_value(table)}),
            codes=(*in_key, "bad_value", *WRITES, *BODY),
        ),
        "delete": operation(
            f"delete_{name}_row",
            "Write a tombstone, whether or not the key is there",
            place,
            parameters=[key],
            codes=(*in_key, *WRITES),
        ),
    }
    lines: Node = {
        "description": f"JSON lines, each of the shape {row_name(table, 'line')}. At most {limits.body_bytes} bytes.",
        "type": "string",
        "maxLength": limits.body_bytes,
    }
    return {
        f"/tables/{name}/rows": {
            **reading(
                f"{name}_rows",
                "Rows in the order of the keys' bytes, a page at a time",
                done(ref(row_name(table, "page")), page, headers=FRESH),
                parameters=[
                    *(key_parameter(codec, limits, bound, "query") for bound in bounds),
                    *paging(limits),
                    min_position(),
                ],
                codes=("bad_key", "key_too_long", "bad_cursor", *READS),
            ),
            "post": operation(
                f"post_{name}_rows",
                "Write several rows; a mistake in one line, and none is written",
                done(ref("written"), {"written": 1, "position": "2:18"}),
                body=(LINES, {"schema": lines, "example": msgspec.json.encode(line).decode() + "\n"}),
                codes=("bad_key", "key_too_long", "bad_line", *WRITES, *BODY),
            ),
        },
        f"/tables/{name}/rows/{{key}}": {
            **reading(
                f"{name}_row",
                "One row",
                done(ref(row_name(table)), example_row(table), headers=TAGGED),
                parameters=[key, min_position(), if_none_match()],
                codes=(*in_key, "key_not_found", *READS),
                not_modified=True,
            ),
            **writing,
        },
    }


def _short_paths(table: Described, limits: Limits) -> Node:
    name, key = table.name, key_parameter(table.key_codec, limits, "key", "path")
    value = bare_value(table)
    listed = {"type": "array", "items": value}
    return {
        f"/{name}": reading(
            f"{name}_short_rows",
            "All bare values in key order; a page of them with limit or cursor. An answer that breaks off is not whole",
            done(listed, [example_value(table)], headers={**FRESH, "link": LINK}),
            parameters=[*paging(limits, short=True), min_position()],
            codes=("bad_cursor", *READS),
            short=True,
        ),
        f"/{name}/count": reading(
            f"{name}_short_count",
            "How many rows there are, exactly",
            done(ref("count"), {"count": 10}, headers=FRESH),
            parameters=[min_position()],
            codes=READS,
            short=True,
        ),
        f"/{name}/{{key}}": reading(
            f"{name}_short_row",
            "One bare value; that of a key named count has only the long route",
            done(value, example_value(table), headers=TAGGED),
            parameters=[key, min_position(), if_none_match()],
            codes=("bad_path", "bad_key", "key_too_long", "key_not_found", *READS),
            not_modified=True,
            short=True,
        ),
    }
