"""Hooks for rules that an OpenAPI document can't express. Schemathesis loads them through schemathesis.toml."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlencode

import schemathesis
from hypothesis import strategies as st

# hyper, under granian, answers an address above this by itself, without a body: docs/http.md says so.
LONGEST_ADDRESS = 65_000
LAST = "last-event-id"


def line_of(key: bytes, value: bytes | None) -> bytes:
    """A line of a write that every codec accepts."""
    fields: dict[str, Any] = {"key_base64": base64.b64encode(key).decode()}
    fields |= {"tombstone": True} if value is None else {"value_base64": base64.b64encode(value).decode()}
    return json.dumps(fields).encode()


LINES = st.lists(
    st.builds(line_of, st.binary(min_size=1, max_size=20), st.none() | st.binary(max_size=20)), max_size=4
).map(b"\n".join)
schemathesis.openapi.media_type("application/x-ndjson", LINES)


def is_positive(case: schemathesis.Case[Any]) -> bool:
    """Whether the whole request follows the document."""
    return case.meta is not None and case.meta.generation.mode.is_positive


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Schemathesis takes only bytes as an example of a media type with a strategy, and JSON has no bytes."""
    for path in raw_schema["paths"].values():
        if "requestBody" in path.get("post", {}):
            del path["post"]["requestBody"]["content"]["application/x-ndjson"]["example"]


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    if len(case.formatted_path) + len(urlencode(case.query, doseq=True)) >= LONGEST_ADDRESS:
        return False
    if "after" in case.query and LAST in case.headers:
        # The server ignores the header then.
        return False
    # A pattern can't say that a partition occurs once in a position.
    position = str(case.query.get("min_position") or case.query.get("after") or case.headers.get(LAST) or "")
    partitions = [part.partition(":")[0] for part in position.split(",")]
    return not is_positive(case) or len(partitions) == len({part.lstrip("0") for part in partitions})


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> schemathesis.Case[Any]:
    """A schema can't say which cursors are valid and which tables an id names, and can't tell 1.0 from 1."""
    if is_positive(case):
        case.query.pop("cursor", None)
        if case.path == "/changes":
            case.query.pop("after", None)
            case.headers.pop(LAST, None)
        if isinstance(case.body, float):
            case.body = int(case.body)
    return case
