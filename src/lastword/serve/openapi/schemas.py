"""The shapes of the OpenAPI document: keys, values and rows by their codecs, positions, errors, how a table stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lastword.core.codecs import Codec
from lastword.serve.http.limits import Limits

Node = dict[str, Any]

_INT64: Node = {
    "description": "Written without a fraction or an exponent.",
    "type": "integer",
    "format": "int64",
    "minimum": -(2**63),
    "maximum": 2**63 - 1,
}
COUNT: Node = {"type": "integer", "format": "int64", "minimum": 0}
_BASE64: Node = {
    "type": "string",
    "contentEncoding": "base64",
    "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
# One text for each bytes: the bits that a last letter has too many are 0.
_BASE64URL = "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-][AQgw](==)?|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=?)?$"
TIME: Node = {"type": "integer", "format": "int64", "minimum": -1, "description": "In ms."}
_WHERE: Node = {
    "partition": COUNT,
    "offset": COUNT,
    "timestamp": TIME,
}
_PLACE = "[0-9]{1,19}:[0-9]{1,19}"
_EXAMPLE_VALUES: dict[str, Any] = {"string": "Alice", "json": {"name": "Alice"}, "bytes": "QWxpY2U=", "int": 42}
_EXAMPLE_KEYS: dict[str, Any] = {"string": "user-1", "json": {"id": 1}, "bytes": "dXNlci0x", "int": 1}


class Described(Protocol):
    """What the document has to know of a table."""

    @property
    def name(self) -> str: ...
    @property
    def key_codec(self) -> Codec: ...
    @property
    def value_codec(self) -> Codec: ...
    @property
    def short(self) -> bool: ...


class DescribedRoute(Protocol):
    """What the document has to know of a guest's route."""

    @property
    def path(self) -> str: ...
    @property
    def operations(self) -> Mapping[str, Any]: ...


class DescribedGuest(Protocol):
    """What the document has to know of a guest."""

    @property
    def name(self) -> str: ...
    @property
    def is_present(self) -> bool: ...
    @property
    def routes(self) -> Sequence[DescribedRoute]: ...
    @property
    def schemas(self) -> Mapping[str, Any]: ...


def ref(name: str) -> Node:
    return {"$ref": f"#/components/schemas/{name}"}


def row_name(table: Described, part: str = "row") -> str:
    """The name of a schema that differs from codec to codec, not from table to table."""
    return f"{part}_{table.key_codec.name}_{table.value_codec.name}"


def put_name(table: Described) -> str:
    return row_name(table, "put")


def delete_name(table: Described) -> str:
    return row_name(table, "delete")


def key_parameter(codec: Codec, limits: Limits, name: str, where: str) -> Node:
    """A key, or a part of one, as it stands in an address."""
    told: Node = {"name": name, "in": where, "required": where == "path"}
    if where == "query":
        told["allowEmptyValue"] = True
    example = _EXAMPLE_KEYS[codec.name]
    match codec.name:
        case "int":
            return {**told, "schema": _INT64, "example": example}
        case "json":
            described = f"The JSON text of the key, of at most {limits.key_bytes} bytes."
            text = {"application/json": {"schema": {}, "example": example}}
            return {**told, "description": described, "content": text}
        case "bytes":
            # Without padding.
            longest = -(-limits.key_bytes * 4 // 3)
            schema = {"type": "string", "minLength": 2, "maxLength": longest, "pattern": _BASE64URL}
            described = f"The base64url of at most {limits.key_bytes} bytes."
        case _:
            # U+FFFD in a path stands for bytes that were not UTF-8.
            schema = {"type": "string", "minLength": 1, "maxLength": limits.key_bytes, "pattern": "^[^\ufffd]+$"}
            described = f"Text of at most {limits.key_bytes} bytes in UTF-8, percent-encoded."
    if where == "query":
        del schema["minLength"]
    if where == "query" and codec.name == "string":
        del schema["pattern"]
    return {**told, "description": described, "schema": schema, "example": example}


def components(tables: list[Described], limits: Limits) -> Node:
    """Every schema that the document refers to."""
    made: Node = {
        "position": {
            "type": "string",
            "description": "For each partition the offset of the next record: everything before it is meant.",
            "pattern": f"^({_PLACE}(,{_PLACE})*)?$",
            "examples": ["0:18,1:5,2:9"],
        },
        "error": closed(
            {"error": closed({"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}})}
        ),
        "short_error": closed({"error": {"type": "string"}}),
        "standing": _standing(),
        "place": closed({"partition": COUNT, "offset": COUNT, "position": ref("position")}),
        "written": closed({"written": COUNT, "position": ref("position")}),
        "count": closed({"count": COUNT}),
        "reset": closed({"reason": {"type": "string"}, "table": {"type": "string"}}, optional=("table",)),
    }
    for table in tables:
        made[row_name(table)] = _row(table)
        made[put_name(table)] = _row(table, named=True)
        made[delete_name(table)] = _delete(table)
        made[row_name(table, "line")] = _line(table)
        made[row_name(table, "page")] = closed(
            {
                "rows": {"type": "array", "items": ref(row_name(table)), "maxItems": limits.page_rows},
                "next": {"type": ["string", "null"], "description": "The next page's cursor; null after the last."},
                "position": ref("position"),
            }
        )
    return made


def value_schema(codec: Codec) -> Node:
    """A value as the JSON in which it is shown and sent."""
    return {"json": {}, "string": {"type": "string"}, "bytes": _BASE64, "int": _INT64}[codec.name]


def bare_value(table: Described) -> Node:
    """What the short routes give: the value, or the whole row where the codec can't read it."""
    value = value_schema(table.value_codec)
    return {"anyOf": [value, ref(row_name(table))]} if value else value


def example_value(table: Described) -> Any:
    return _EXAMPLE_VALUES[table.value_codec.name]


def example_row(table: Described) -> Node:
    place = {"partition": 2, "offset": 17, "timestamp": 1_767_225_600_000}
    return {"key": _EXAMPLE_KEYS[table.key_codec.name], "value": example_value(table), **place}


def example_standing(table: Described) -> Node:
    return {
        "name": table.name,
        "topic": "user-profiles",
        "topic_id": "x8uVfLZNQmG1nRbYpKs0Tw",
        "key": table.key_codec.name,
        "value": table.value_codec.name,
        "partitions": 3,
        "rows": 10,
        "position": "0:18,1:5,2:9",
        "log_start": "0:0,1:0,2:0",
        "topic_log_start": "0:0,1:0,2:0",
        "lag": 0,
        "state": "ready",
        "why": None,
        "deletes": "certain",
    }


def _row(table: Described, *, named: bool = False) -> Node:
    """A row; as an event of several tables' changes with the name of its own."""
    fields: Node = {
        **_either("key", table.key_codec),
        **_either("value", table.value_codec),
        "decode_error": {"type": "string"},
        "headers": _HEADERS,
        **({"table": {"type": "string"}} if named else {}),
    }
    return {
        **closed({**_WHERE, **fields}, optional=tuple(fields)),
        "allOf": [_one_of("key", "key_base64"), _one_of("value", "value_base64")],
        "dependentRequired": {"key_base64": ["decode_error"], "value_base64": ["decode_error"]},
        "examples": [example_row(table)],
    }


def _delete(table: Described) -> Node:
    """The data of an event that says that a row is gone."""
    maybe: Node = {
        **_either("key", table.key_codec),
        "decode_error": {"type": "string"},
        "headers": _HEADERS,
        "table": {"type": "string"},
        "swept": {
            "const": True,
            "description": "No tombstone says so: it was compacted away, or the row's record left the topic.",
        },
    }
    return {
        **closed({"tombstone": {"const": True}, **_WHERE, **maybe}, optional=tuple(maybe)),
        **_one_of("key", "key_base64"),
        "dependentRequired": {"key_base64": ["decode_error"]},
    }


def _either(name: str, codec: Codec) -> Node:
    damaged = {"description": "Bytes that the codec can't read.", **_BASE64}
    return {name: value_schema(codec), f"{name}_base64": damaged}


def _line(table: Described) -> Node:
    """A line of a body that writes; where a row stood is taken and of no meaning."""
    no_place: Node = {"type": ["integer", "null"], "format": "int64"}
    fields: Node = {
        "key": value_schema(table.key_codec),
        "key_base64": _BASE64,
        "value": value_schema(table.value_codec),
        "value_base64": _BASE64,
        "tombstone": {"type": "boolean"},
        "headers": _HEADERS,
        "partition": no_place,
        "offset": no_place,
        "timestamp": no_place,
        "decode_error": {"type": ["string", "null"]},
    }
    deletes = {"required": ["tombstone"], "properties": {"tombstone": {"const": True}}}
    value = {"oneOf": [{"required": ["value"]}, {"required": ["value_base64"]}, deletes]}
    example = example_row(table)
    return {
        **closed(fields, optional=tuple(fields)),
        "allOf": [_one_of("key", "key_base64"), value],
        "examples": [
            {"key": example["key"], "value": example["value"]},
            {"key": example["key"], "tombstone": True},
        ],
    }


def _standing() -> Node:
    codec = {"enum": ["string", "json", "bytes", "int"]}
    catching_up = ("done", "total", "seconds_left")
    fields: Node = {
        "name": {"type": "string"},
        "topic": {"type": "string"},
        "topic_id": {"type": ["string", "null"], "description": "null while there is nothing right to show."},
        "key": codec,
        "value": codec,
        "partitions": COUNT,
        "rows": {**COUNT, "type": ["integer", "null"], "description": "null while there is nothing right to show."},
        "position": ref("position"),
        "log_start": {
            **ref("position"),
            "description": "The rows are the fold of the records from here up to the position.",
        },
        "topic_log_start": {
            **ref("position"),
            "description": "Where the topic's log started at the last look. Rows from before it are being removed.",
        },
        "lag": {**COUNT, "type": ["integer", "null"], "description": "null while it does not follow its topic."},
        "state": {"enum": ["connecting", "catching-up", "ready", "rebuilding", "failed"]},
        "why": {"type": ["string", "null"]},
        "deletes": {
            "enum": ["certain", "uncertain"],
            "description": "uncertain: a key that was deleted may still be shown.",
        },
        "done": COUNT,
        "total": COUNT,
        "seconds_left": {"type": ["number", "null"], "minimum": 0},
    }
    return {
        **closed(fields, optional=catching_up),
        "if": {"properties": {"state": {"enum": ["catching-up", "rebuilding"]}}},
        "then": {"required": list(catching_up)},
        "else": {"properties": dict.fromkeys(catching_up, False)},
    }


def closed(fields: Node, *, optional: tuple[str, ...] = ()) -> Node:
    """An object with these fields and no others."""
    required = [name for name in fields if name not in optional]
    told: Node = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**told, "required": required} if required else told


_HEADERS: Node = {
    "type": "array",
    "description": "The record's headers, [name, value] each, the name as text; not there if it has none.",
    # Not by prefixItems, which not every reader of such documents understands.
    "items": {
        "type": "array",
        "items": {"anyOf": [{"type": ["string", "null"]}, closed({"base64": _BASE64})]},
        "minItems": 2,
        "maxItems": 2,
    },
}


def _one_of(*names: str) -> Node:
    return {"oneOf": [{"required": [name]} for name in names]}
