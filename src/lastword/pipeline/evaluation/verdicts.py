"""What is wrong with a record that Spark could not read, may have read too kindly, or could not compute."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, kw_only=True)
class SourceField:
    """A field of the source's schema; `kind` is how its type is called."""

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
    """Why it is no valid record; None if it is one.

    `unread` are the names of the fields that Spark found no value for, `failed` the expressions of the file that threw;
    without `is_readable` Spark could not read it at all.
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
    found = {field.name: document.get(field.name) for field in fields}
    missing = [field.name for field in fields if field.is_required and found[field.name] is None]
    wrong = [
        f"{field.name} (not {field.kind})"
        for field in fields
        if found[field.name] is not None
        and (field.name in unread or (field.is_text and not isinstance(found[field.name], str)))
    ]
    told = [f"missing or null: {', '.join(missing)}"] if missing else []
    told += [f"of the wrong type: {', '.join(wrong)}"] if wrong else []
    if not told and not is_readable:
        return "its value does not fit the schema"
    if not told and failed:
        return f"it can't be computed: {'; '.join(failed)}"
    return "; ".join(told) or None
