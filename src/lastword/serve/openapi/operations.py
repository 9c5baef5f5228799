"""One operation of the document: its answer, its headers, and its refusals by their codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from lastword.console import FIRST, PageFile
from lastword.core.shapes.rows import CountAnswer, SentPage, SentRow, WriteAnswer, WritesAnswer
from lastword.core.shapes.topics import CompactionBegun
from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.http.routes import Access, Content, Route
from lastword.serve.openapi.examples import example_of, example_row, example_value
from lastword.serve.openapi.parameters import (
    header_parameter,
    key_parameter,
    named,
    query_parameters,
    resuming,
    topic_parameter,
)
from lastword.serve.openapi.schemas import Described, Node, bare_value, ref, row_name, value_schema

JSON = "application/json"
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"

_EVERYWHERE = ("bad_query", "query_too_long", "internal")
# What a stream of changes may end with.
_CUT = ("fell_behind", "table_failed", "stopping")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_ID = "An event's id is the position of the table after the event: a stream resumes from it."
_EVENT = 'id: 0:18,1:5\nevent: put\ndata: {"key":"user-1","value":1,"partition":0,"offset":17,"timestamp":0}\n\n'

_POSITION: Node = {
    "description": "Everything before this position is in the answer.",
    "required": True,
    "schema": ref("position"),
}
_ROW_TAG: Node = {
    "description": "Changes with every write of the key; weak where the answer is compressed.",
    "required": True,
    "schema": {"type": "string", "pattern": '^(W/)?"[A-Za-z0-9+/_-]{8}-[0-9]+-[0-9]+"$'},
}
_NEXT_PAGE: Node = {
    "description": "The address of the next page; not there after the last one, nor where all rows are given.",
    "schema": {"type": "string", "pattern": '^<[^>]+>; rel="next"$'},
}
_FRESH: Node = {"x-lastword-position": _POSITION}
_ROW_HEADERS: Node = {"etag": _ROW_TAG, **_FRESH}
_FILE_HEADERS: Node = {
    "etag": {
        "description": "Changes with the content; weak where the answer is compressed.",
        "required": True,
        "schema": {"type": "string", "pattern": '^(W/)?"[0-9a-f]{16}"$'},
    },
    "content-security-policy": {"required": True, "schema": {"type": "string"}},
}
_STREAM_HEADERS: Node = {"x-lastword-position": {"required": True, "schema": {"type": "string"}}}
# Of what is refused with one code alone.
_REFUSAL_HEADERS: dict[str, Node] = {
    "key_not_found": _FRESH,
    "unauthorized": {"www-authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    "method_not_allowed": {
        "allow": {"description": "The methods of the path.", "required": True, "schema": {"type": "string"}}
    },
}


class Surroundings(NamedTuple):
    """What the operations of a server are made from, beside the routes."""

    tables: list[Described]
    limits: Limits
    files: Mapping[str, PageFile]
    guests: list[str]
    # Of the answers of the guests.
    guest_examples: list[Struct]
    # Whether a token is needed.
    guarded: bool


def operations(route: Route[Any], table: Described | None, around: Surroundings) -> Node:
    """The operations of a route, of one table where its codecs decide: GET has its HEAD beside it."""
    answer = _answer(route, table, around)
    responses: Node = {"202" if route.answer is CompactionBegun else "200": answer}
    if "etag" in answer.get("headers", {}):
        about = "The client's copy, which If-None-Match names, is still the newest."
        responses["304"] = {"description": about, "headers": answer["headers"]}
    summary, _, description = _LINK.sub(r"\1", route.doc).partition(". ")
    name = "_".join([*([table.name] if table is not None else []), *route.name.split(" ")])
    operation: Node = {"operationId": name, "summary": summary.removesuffix("."), "responses": responses}
    if description:
        operation["description"] = description
    if parameters := list(_parameters(route, table, around)):
        operation["parameters"] = parameters
    if (body := _request_body(route, table, around.limits)) is not None:
        operation["requestBody"] = body
    return methods_of(operation, route, around.guarded)


def methods_of(operation: Node, route: Route[Any], guarded: bool) -> Node:
    """The operation under its method, with its refusals; a GET also as a HEAD, which is answered without the body."""
    codes = [*route.codes, *_EVERYWHERE]
    if not guarded:
        codes.append("bad_host")
    elif route.access is not Access.OPEN:
        codes += ["unauthorized", "forbidden"] if route.access is Access.WRITE else ["unauthorized"]
    responses = {**operation["responses"], **refusals(codes, short=route.is_short)}
    whole: Node = {**operation, "responses": responses}
    if guarded and route.access is Access.OPEN:
        whole["security"] = []
    method = route.method.lower()
    found = {method: {**whole, "operationId": f"{method}_{operation['operationId']}"}}
    if method == "get":
        found["head"] = {
            **whole,
            "operationId": f"head_{operation['operationId']}",
            "summary": f"{operation['summary']}: the headers alone",
            "responses": {status: _without_body(each) for status, each in responses.items()},
        }
    return found


def refusals(codes: Iterable[str], *, short: bool = False) -> Node:
    """For each status the codes that may come with it."""
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(ERROR_CODES[code].status, []).append(code)
    return {str(status): _refusal(by_status[status], short=short) for status in sorted(by_status)}


def refusal_schema(codes: Iterable[str]) -> Node:
    """The one error shape, with these codes and no others."""
    return {**ref("ErrorAnswer"), "properties": {"error": {"properties": {"code": {"enum": list(codes)}}}}}


def stream_content(events: Node, description: str, example: str | None = None) -> Node:
    """A stream of server-sent events, whose content OpenAPI 3.1 has no words for: `x-events` has what `data` holds."""
    media: Node = {"schema": {"type": "string", "description": description, "x-events": events}}
    return {EVENTS: media if example is None else {**media, "example": example}}


def _answer(route: Route[Any], table: Described | None, around: Surroundings) -> Node:
    content, headers = _content(route, table, around), _headers(route, table)
    answer: Node = {"description": "Done.", "content": content}
    if route.answer is WriteAnswer and table is not None:
        answer["links"] = _read_your_write(table)
    return {**answer, "headers": headers} if headers else answer


def _content(route: Route[Any], table: Described | None, around: Surroundings) -> Node:
    """What is answered, by media type."""
    match route.answer:
        case Mapping() as content:
            return dict(content)
        case Content.EVENTS:
            return _changes(around.tables if table is None else [table], several=table is None)
        case Content.FILE:
            files = around.files.values() if "{file}" in route.path else [around.files[FIRST]]
            kinds = sorted({file.media_type.partition(";")[0] for file in files})
            return {kind: {"schema": {"type": "string"}} for kind in kinds}
        case Content.TEXT:
            return {"text/plain": {"schema": {"type": "string"}}}
        case Content.DOCUMENT:
            return {JSON: {"schema": {"type": "object", "required": ["openapi", "paths"]}}}
        case Content.VALUE if table is not None:
            return {JSON: {"schema": bare_value(table), "example": example_value(table)}}
        case Content.VALUES if table is not None:
            values = {"type": "array", "items": bare_value(table)}
            return {JSON: {"schema": values, "example": [example_value(table)]}}
        case shape if shape is SentRow and table is not None:
            return {JSON: {"schema": ref(row_name(table)), "example": example_row(table)}}
        case shape if shape is SentPage and table is not None:
            page = {"rows": [example_row(table)], "next": None, "position": "0:18,1:5,2:18"}
            return {JSON: {"schema": ref(row_name(table, "page")), "example": page}}
        case type() as shape:
            return {
                JSON: {
                    "schema": ref(shape.__name__),
                    "example": example_of(shape, around.guests, around.guest_examples),
                }
            }
        case _:
            raise NotImplementedError(route)


def _headers(route: Route[Any], table: Described | None) -> Node:
    match route.answer:
        case Content.EVENTS:
            # The position of several tables names each of them.
            return _STREAM_HEADERS if table is None else _FRESH
        case Content.FILE:
            return _FILE_HEADERS
        case Content.VALUES:
            return {**_FRESH, "link": _NEXT_PAGE}
        case Content.VALUE:
            return _ROW_HEADERS
        case shape if shape is SentRow:
            return _ROW_HEADERS
        case shape if shape in (SentPage, CountAnswer):
            return _FRESH
        case _:
            return {}


def _changes(tables: list[Described], *, several: bool) -> Node:
    events: Node = {
        "put": _any_of(row_name(table, "put") for table in tables),
        "delete": _any_of(row_name(table, "delete") for table in tables),
        "reset": ref("SentReset"),
        "cut": refusal_schema(_CUT),
    }
    return stream_content(events, _ID, None if several else _EVENT)


def _any_of(names: Iterable[str]) -> Node:
    distinct = [ref(name) for name in dict.fromkeys(names)]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _parameters(route: Route[Any], table: Described | None, around: Surroundings) -> Iterable[Node]:
    names = [each.name for each in around.tables]
    if "{table}" in route.path and table is None:
        yield named("table", {"type": "string", "enum": names})
    if "{key}" in route.path and table is not None:
        yield key_parameter(table.key_codec, around.limits, "key", "path")
    if "{topic}" in route.path:
        yield topic_parameter()
    if "{file}" in route.path:
        yield named("file", {"enum": [*around.files]}, FIRST)
    yield from query_parameters(route.query, table, names, around.limits, short=route.is_short)
    if route.answer in (SentRow, Content.VALUE, Content.FILE):
        about = "An etag that you have: 304 where the answer is still that one."
        yield header_parameter("if-none-match", about)
    if route.answer is Content.EVENTS:
        yield header_parameter("last-event-id", "As `after`, and instead of it.", resuming(table))


def _request_body(route: Route[Any], table: Described | None, limits: Limits) -> Node | None:
    if table is None or route.access is not Access.WRITE:
        return None
    if route.answer is WritesAnswer:
        line = {"key": example_row(table)["key"], "value": example_value(table)}
        about = f"JSON lines, each of the shape {row_name(table, 'line')}. At most {limits.body_bytes} bytes."
        schema: Node = {"description": about, "type": "string", "maxLength": limits.body_bytes}
        # No line at all is nothing to write, and no mistake.
        content = {LINES: {"schema": schema, "example": msgspec.json.encode(line).decode() + "\n"}}
        return {"required": False, "content": content}
    if route.method == "PUT":
        content = {JSON: {"schema": value_schema(table.value_codec), "example": example_value(table)}}
        return {"required": True, "content": content}
    return None


def _read_your_write(table: Described) -> Node:
    """The link from a write to the read that shows it."""
    return {
        "read": {
            "operationId": f"get_{table.name}_row",
            "parameters": {"key": "$request.path.key", "min_position": "$response.body#/position"},
            "description": "Read your own write, on any instance.",
        }
    }


def _refusal(codes: list[str], *, short: bool) -> Node:
    schema = ref("ShortErrorAnswer") if short else refusal_schema(codes)
    description = " ".join(f"`{code}`: {ERROR_CODES[code].meaning}" for code in codes)
    refusal: Node = {"description": description, "content": {JSON: {"schema": schema}}}
    headers = _REFUSAL_HEADERS.get(codes[0])
    return {**refusal, "headers": headers} if headers and len(codes) == 1 else refusal


def _without_body(answer: Mapping[str, Any]) -> Node:
    return {name: part for name, part in answer.items() if name != "content"}
