"""The parts of the OpenAPI document's operations: answers, refusals by their codes, headers and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.openapi.schemas import Node, ref

LINES = "application/x-ndjson"
# Of an operation that is not completed.
_CODES, _SHORT, _IS_OPEN = "codes", "short", "is_open"
JSON = "application/json"

_EVERYWHERE = ("bad_query", "query_too_long", "internal")
WAITS = ("bad_position", "too_many_waiting", "position_not_reached")
READS = ("not_ready", "store_damaged", "too_many_unsent", "stopping", *WAITS)
WRITES = (
    "not_conditional",
    "cross_origin",
    "value_too_large",
    "topic_changed",
    "write_failed",
    "cluster_unreachable",
    "not_enough_replicas",
    "too_many_writes",
    "stopping",
)
BODY = ("body_broken", "body_too_slow", "body_too_large")

_POSITION: Node = {
    "description": "Everything before this position is in the answer.",
    "required": True,
    "schema": ref("position"),
}
_ETAG: Node = {
    "description": "Changes with every write of the key; weak where the answer is compressed.",
    "required": True,
    "schema": {"type": "string", "pattern": '^(W/)?"[A-Za-z0-9+/_-]{8}-[0-9]+-[0-9]+"$'},
}
LINK: Node = {
    "description": "The address of the next page; not there after the last one, nor where all rows are given.",
    "schema": {"type": "string", "pattern": '^<[^>]+>; rel="next"$'},
}
FRESH: Node = {"x-lastword-position": _POSITION}
TAGGED: Node = {"etag": _ETAG, **FRESH}
# Of what is refused with one code alone.
_HEADERS: dict[str, Node] = {
    "key_not_found": FRESH,
    "unauthorized": {"www-authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    "method_not_allowed": {
        "allow": {"description": "The methods of the path.", "required": True, "schema": {"type": "string"}}
    },
}


def reading(
    name: str,
    summary: str,
    answer: Node,
    *,
    parameters: Iterable[Node] = (),
    codes: Iterable[str] = (),
    not_modified: bool = False,
    short: bool = False,
    is_open: bool = False,
) -> Node:
    """GET, and HEAD, which is answered alike but for the body; `is_open` where no token is ever needed."""
    get = operation(f"get_{name}", summary, answer, parameters=parameters, codes=codes, short=short)
    get[_IS_OPEN] = is_open
    if not_modified:
        get["responses"]["304"] = {"description": "The row is the one that If-None-Match names.", "headers": TAGGED}
    head = {**get, "operationId": f"head_{name}", "summary": f"{summary}: the headers alone"}
    return {"get": get, "head": head}


def operation(
    name: str,
    summary: str,
    answer: Node,
    *,
    parameters: Iterable[Node] = (),
    codes: Iterable[str] = (),
    body: tuple[str, Node] | None = None,
    short: bool = False,
) -> Node:
    """An operation that is still to be completed: its refusals are only named."""
    told: Node = {"operationId": name, "summary": summary}
    if given := list(parameters):
        told["parameters"] = given
    if body is not None:
        # No line at all is nothing to write, and no mistake.
        told["requestBody"] = {"required": body[0] == JSON, "content": {body[0]: body[1]}}
    return {**told, "responses": {"200": answer}, _CODES: list(codes), _SHORT: short, _IS_OPEN: False}


def completed(paths: Node, *, guarded: bool) -> Node:
    """The paths with all that may be refused on them; guarded: where a token is needed."""
    return {
        path: {method: _completed(told, method, guarded=guarded) for method, told in methods.items()}
        for path, methods in paths.items()
    }


def _completed(told: Node, method: str, *, guarded: bool) -> Node:
    codes, is_open = [*told[_CODES], *_EVERYWHERE], told[_IS_OPEN]
    if not guarded:
        codes.append("bad_host")
    elif not is_open:
        codes += ["unauthorized"] if method in ("get", "head") else ["unauthorized", "forbidden"]
    responses = {**told["responses"], **refusals(codes, short=told[_SHORT])}
    if method == "head":
        responses = {status: _without_body(each) for status, each in responses.items()}
    done = {name: part for name, part in told.items() if name not in (_CODES, _SHORT, _IS_OPEN)} | {
        "responses": responses
    }
    return {**done, "security": []} if guarded and is_open else done


def refusals(codes: Iterable[str], *, short: bool = False) -> Node:
    """For each status the codes that may come with it."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(ERROR_CODES[code].status, []).append(code)
    return {str(status): _refusal(by_status[status], short=short) for status in sorted(by_status)}


def _refusal(codes: list[str], *, short: bool) -> Node:
    long = [] if short else codes
    shapes: list[Node] = [] if len(long) == len(codes) else [ref("short_error")]
    if long:
        shapes.append(refusal_schema(long))
    description = " ".join(f"`{code}`: {ERROR_CODES[code].meaning}" for code in codes)
    told = _answer(description, shapes[0] if len(shapes) == 1 else {"anyOf": shapes})
    headers = _HEADERS.get(codes[0])
    return {**told, "headers": headers} if headers and len(codes) == 1 else told


def refusal_schema(codes: Iterable[str]) -> Node:
    """The one error shape, with these codes and no others."""
    return {**ref("error"), "properties": {"error": {"properties": {"code": {"enum": list(codes)}}}}}


def done(schema: Node, *examples: Any, headers: Node | None = None) -> Node:
    told = _answer("Done.", schema)
    for example in examples:
        told["content"][JSON]["example"] = example
    return {**told, "headers": headers} if headers else told


def _answer(description: str, schema: Node) -> Node:
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _without_body(answer: Mapping[str, Any]) -> Node:
    return {name: told for name, told in answer.items() if name != "content"}


def constant(content: Node) -> Node:
    fields = {name: {"const": told} for name, told in content.items()}
    return {"type": "object", "properties": fields, "required": list(content)}


def min_position() -> Node:
    return {
        "name": "min_position",
        "in": "query",
        "description": "Waits until the table has everything before this position.",
        "schema": ref("position"),
        "example": "0:0",
    }


def if_none_match(what: str = "the row") -> Node:
    return {
        "name": "if-none-match",
        "in": "header",
        "description": f"An etag that you have: 304 where {what} is still that one.",
        "schema": {"type": "string"},
    }


def paging(limits: Limits, *, short: bool = False) -> list[Node]:
    """Of a list; the short one has all rows where neither is given."""
    most = limits.page_rows
    size: Node = {"type": "integer", "minimum": 1, "maximum": most}
    return [
        {
            "name": "limit",
            "in": "query",
            "description": "How many rows a page has at most.",
            "schema": size if short else {**size, "default": most},
            "example": min(10, most),
        },
        {
            "name": "cursor",
            "in": "query",
            "description": "The end of the page before, as it was given, with the same prefix, start and end.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{12,}$"},
        },
    ]
