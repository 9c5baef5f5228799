"""The parameters of the document: names in paths, the fields of queries, and headers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from lastword.core.codecs import Codec
from lastword.serve.http.limits import Limits
from lastword.serve.openapi.examples import KEYS
from lastword.serve.openapi.schemas import INT64, Described, Node, ref

# One text for each bytes: the bits that a last letter has too many are 0.
_BASE64URL = "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-][AQgw](==)?|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=?)?$"
_PLACE = "[0-9]{1,19}:[0-9]{1,19}"
_OF_ONE_TABLE = f"[A-Za-z0-9_-]+=({_PLACE}(,{_PLACE})*)?"
# Kafka has no topic named . or .. either.
_TOPIC: Node = {"type": "string", "maxLength": 249, "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$"}


def key_parameter(codec: Codec, limits: Limits, name: str, where: str) -> Node:
    """A key, or a part of one, as it stands in an address."""
    parameter: Node = {"name": name, "in": where, "required": where == "path"}
    if where == "query":
        parameter["allowEmptyValue"] = True
    example = KEYS[codec.name]
    match codec.name:
        case "int":
            return {**parameter, "schema": INT64, "example": example}
        case "json":
            text = {"application/json": {"schema": {}, "example": example}}
            described = f"The JSON text of the key, of at most {limits.key_bytes} bytes."
            return {**parameter, "description": described, "content": text}
        case "bytes":
            # Without padding.
            longest = -(-limits.key_bytes * 4 // 3)
            schema: Node = {"type": "string", "minLength": 2, "maxLength": longest, "pattern": _BASE64URL}
            described = f"The base64url of at most {limits.key_bytes} bytes."
        case _:
            # U+FFFD in a path stands for bytes that were not UTF-8.
            schema = {"type": "string", "minLength": 1, "maxLength": limits.key_bytes, "pattern": "^[^\ufffd]+$"}
            described = f"Text of at most {limits.key_bytes} bytes in UTF-8, percent-encoded."
    if where == "query":
        del schema["minLength"]
    if where == "query" and codec.name == "string":
        del schema["pattern"]
    return {**parameter, "description": described, "schema": schema, "example": example}


def named(name: str, schema: Node, example: str | None = None) -> Node:
    """A name in a path."""
    parameter = {"name": name, "in": "path", "required": True, "schema": schema}
    return parameter if example is None else {**parameter, "example": example}


def topic_parameter() -> Node:
    return named("topic", _TOPIC, "user-profiles")


def query_parameters(
    query: type[Struct], table: Described | None, names: list[str], limits: Limits, *, short: bool
) -> Iterable[Node]:
    """The fields of a query, of one table or of several of these names."""
    for field, schema in _fields(query).items():
        if field in ("prefix", "start", "end") and table is not None:
            if field != "prefix" or table.key_codec.name in ("string", "bytes"):
                yield key_parameter(table.key_codec, limits, field, "query")
            continue
        yield {
            "name": field,
            "in": "query",
            "description": schema["description"],
            **_query_schema(field, table, names, limits, short=short),
        }


def header_parameter(name: str, description: str, schema: Node | None = None) -> Node:
    return {"name": name, "in": "header", "description": description, **(schema or {"schema": {"type": "string"}})}


def resuming(table: Described | None) -> Node:
    """The id of an event: the position of its table, or that of each of several."""
    if table is not None:
        return {"schema": ref("position"), "example": "0:18,1:5"}
    return {"schema": {"type": "string", "pattern": f"^({_OF_ONE_TABLE}(;{_OF_ONE_TABLE})*)?$"}}


def _fields(query: type[Struct]) -> Node:
    _, found = msgspec.json.schema_components([query])
    properties: Node = found[query.__name__]["properties"]
    return properties


def _query_schema(field: str, table: Described | None, names: list[str], limits: Limits, *, short: bool) -> Node:
    match field:
        case "min_position":
            return {"schema": ref("position"), "example": "0:0"}
        case "limit":
            size: Node = {"type": "integer", "minimum": 1, "maximum": limits.page_rows}
            # The short form has all rows where no limit is given.
            default = {} if short else {"default": limits.page_rows}
            return {"schema": size | default, "example": min(10, limits.page_rows)}
        case "cursor":
            return {"schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{12,}$"}}
        case "tables":
            one = {"type": "string", "enum": names}
            return {"style": "form", "explode": False, "schema": {"type": "array", "items": one, "minItems": 1}}
        case "after":
            return resuming(table)
        case _:
            raise NotImplementedError(field)
