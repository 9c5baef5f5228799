"""The schemas of the document: from the Structs of core.shapes, with what the codecs of a table decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from lastword.core.codecs import Codec
from lastword.core.shapes.errors import ErrorAnswer, ShortErrorAnswer
from lastword.core.shapes.field_types import Base64Text, Int64, PositionText
from lastword.core.shapes.rows import RowLine, SentDelete, SentPage, SentPut, SentReset, SentRow
from lastword.kafka.compaction.on_demand import STEPS
from lastword.serve.http.limits import Limits

Node = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
INT64: Node = msgspec.json.schema(Int64)
_BASE64: Node = msgspec.json.schema(Base64Text)
_VALUES: dict[str, Node] = {"json": {}, "string": {"type": "string"}, "bytes": _BASE64, "int": INT64}
# Shapes of which each pair of codecs has a schema of its own.
_BY_CODEC: tuple[type[Struct], ...] = (SentRow, SentPut, SentPage, SentDelete, RowLine)


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


class DescribedGuest(Protocol):
    """What the document has to know of a guest."""

    @property
    def name(self) -> str: ...
    @property
    def is_present(self) -> bool: ...
    @property
    def examples(self) -> Sequence[Struct]: ...


def ref(name: str) -> Node:
    return {"$ref": _REFERENCE.format(name=name)}


def closed(properties: Node, *, optional: tuple[str, ...] = ()) -> Node:
    """An object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def row_name(table: Described, part: str = "row") -> str:
    """The name of a schema that differs from codec to codec, not from table to table."""
    return f"{part}_{table.key_codec.name}_{table.value_codec.name}"


def value_schema(codec: Codec) -> Node:
    """A value as the JSON in which it is shown and sent."""
    return _VALUES[codec.name]


def bare_value(table: Described) -> Node:
    """What the short routes give: the value, or the whole row where the codec can't read it."""
    value = value_schema(table.value_codec)
    return {"anyOf": [value, ref(row_name(table))]} if value else value


def components(shapes: Iterable[type[Struct]], tables: Iterable[Described], limits: Limits) -> Node:
    """Every schema that the document refers to."""
    sent = _sent_schemas([*shapes, *_BY_CODEC, SentReset, ErrorAnswer, ShortErrorAnswer])
    by_codec = {shape: sent.pop(shape.__name__) for shape in _BY_CODEC}
    _add_what_structs_can_not_say(sent)
    for table in tables:
        sent |= _schemas_by_codec(table, by_codec, limits)
    return {"position": msgspec.json.schema(PositionText), **sent}


def _sent_schemas(shapes: list[type[Struct]]) -> Node:
    """The schema of each shape and of those inside it, as the server sends them: no field more, no field less."""
    _, found = msgspec.json.schema_components(dict.fromkeys(shapes), ref_template=_REFERENCE)
    declared = {shape.__name__: shape for shape in _structs_in(shapes)}
    for name, schema in found.items():
        schema.pop("title", None)
        shape = declared[name]
        if shape is not RowLine:
            # A default is for readers of older servers: what is sent has every field that is not UNSET.
            schema["required"] = [field.encode_name for field in fields(shape) if field.default is not msgspec.UNSET]
            schema["additionalProperties"] = False
        for each in schema["properties"].values():
            each.pop("default", None)
    return found


def _structs_in(shapes: Iterable[Any]) -> set[type[Struct]]:
    found: set[type[Struct]] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(shape) for shape in shapes]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls not in found:
                found.add(info.cls)
                waiting.extend(field.type for field in info.fields)
        elif isinstance(info, msgspec.inspect.Metadata):
            waiting.append(info.type)
        elif isinstance(info, msgspec.inspect.UnionType):
            waiting.extend(info.types)
        elif isinstance(info, msgspec.inspect.DictType):
            waiting.append(info.value_type)
        elif isinstance(info, msgspec.inspect.ListType):
            waiting.append(info.item_type)
        elif isinstance(info, msgspec.inspect.TupleType):
            waiting.extend(info.item_types)
    return found


def _add_what_structs_can_not_say(sent: Node) -> None:
    progress = ("done", "total", "seconds_left")
    sent["TableStatus"] |= {
        "if": {"properties": {"state": {"enum": ["catching-up", "rebuilding"]}}},
        "then": {"required": list(progress)},
        "else": {"properties": dict.fromkeys(progress, False)},
    }
    sent["CompactionStatus"]["properties"]["step"]["enum"] = [*STEPS, None]


def _schemas_by_codec(table: Described, shapes: Mapping[type[Struct], Node], limits: Limits) -> Node:
    """The shapes with the key and the value that the codecs of a table make."""
    row, put, page, delete, line = (shapes[shape] for shape in _BY_CODEC)
    base64 = {"key_base64": ["decode_error"], "value_base64": ["decode_error"]}
    key_and_value: Node = {"allOf": [_one_of("key", "key_base64"), _one_of("value", "value_base64")]}
    whole: Node = {**key_and_value, "dependentRequired": base64}
    deletes = {"required": ["tombstone"], "properties": {"tombstone": {"const": True}}}
    value = {"oneOf": [{"required": ["value"]}, {"required": ["value_base64"]}, deletes]}
    rows = {"type": "array", "items": ref(row_name(table)), "maxItems": limits.page_rows}
    return {
        row_name(table): _typed(row, table) | whole,
        row_name(table, "put"): _typed(put, table) | whole,
        row_name(table, "delete"): {
            **_typed(delete, table),
            **_one_of("key", "key_base64"),
            "dependentRequired": {"key_base64": ["decode_error"]},
        },
        row_name(table, "line"): {**_typed(line, table), "allOf": [_one_of("key", "key_base64"), value]},
        row_name(table, "page"): {
            **page,
            "properties": {**page["properties"], "rows": rows, "position": ref("position")},
        },
    }


def _typed(schema: Node, table: Described) -> Node:
    properties: Node = {**schema["properties"], "key": value_schema(table.key_codec)}
    if "value" in properties:
        properties["value"] = value_schema(table.value_codec)
    headers = {**_HEADERS, "description": properties["headers"].get("description", "As a row has them.")}
    return {**schema, "properties": {**properties, "headers": headers}}


def _one_of(*names: str) -> Node:
    return {"oneOf": [{"required": [name]} for name in names]}


_HEADERS: Node = {
    "type": "array",
    # Not by prefixItems, which not every reader of such documents understands.
    "items": {
        "type": "array",
        "items": {"anyOf": [{"type": ["string", "null"]}, closed({"base64": _BASE64})]},
        "minItems": 2,
        "maxItems": 2,
    },
}
