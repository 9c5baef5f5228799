"""Why a record is rejected: Spark could not read it, may have read it too leniently, or an expression failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, kw_only=True)
class SourceField:
    """A field of the source's schema; `kind` is the name of its type."""

    name: str
    kind: str
    is_required: bool
    is_text: bool


def fault_of(
    value: bytes | None,
    fields: tuple[SourceField, ...],
    *,
    unread: Collection[str],
    failed: Sequence[str],
    is_readable: bool,
) -> str | None:
    """Why the record is not valid; None if it is.

    `unread`: the fields that Spark values no value for. `failed`: the expressions of the file that failed.
    Without `is_readable` Spark could not read the record at all.
    """
    if value is None:
        return "it has no value"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "its value is not UTF-8 text"
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return "its value is not JSON"
    if not isinstance(document, dict):
        return "its value is not a JSON object"
    values = {field.name: document.get(field.name) for field in fields}
    missing = [field.name for field in fields if field.is_required and values[field.name] is None]
    wrong = [
        f"{field.name} (not {field.kind})"
        for field in fields
        if values[field.name] is not None
        and (field.name in unread or (field.is_text and not isinstance(values[field.name], str)))
    ]
    faults = [f"missing or null: {', '.join(missing)}"] if missing else []
    faults += [f"of the wrong type: {', '.join(wrong)}"] if wrong else []
    if not faults and not is_readable:
        return "its value does not fit the schema"
    if not faults and failed:
        return f"it can't be computed: {'; '.join(failed)}"
    return "; ".join(faults) or None
