"""The status of served tables, and of the server, as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lastword.core.shapes.field_types import Count, PositionText, Rate

CodecName = Annotated[str, Meta(extra_json_schema={"enum": ["string", "json", "bytes", "int"]})]
_NOT_YET = "null while the table can't be read."


class TableStatus(Struct, frozen=True, kw_only=True):
    """What is served under a name, and how far it is."""

    name: str
    topic: str
    topic_id: Annotated[str | None, Meta(description=_NOT_YET)]
    key: CodecName
    value: CodecName
    partitions: Count
    rows: Annotated[Count | None, Meta(description=_NOT_YET)]
    position: PositionText
    # Empty from servers of before these two fields.
    log_start: Annotated[
        PositionText, Meta(description="The rows are the fold of the records from here up to the position.")
    ] = ""
    topic_log_start: Annotated[
        PositionText,
        Meta(description="Where the topic's log started at the last look. Rows from before it are being removed."),
    ] = ""
    lag: Annotated[Count | None, Meta(description="null while the table does not follow its topic.")]
    state: Literal["connecting", "catching-up", "ready", "rebuilding", "failed"]
    why: str | None
    deletes: Annotated[
        Literal["certain", "uncertain"],
        Meta(description="uncertain: a key that was deleted may still be shown."),
    ]
    # Only while it catches up or is built again.
    done: Count | UnsetType = UNSET
    total: Count | UnsetType = UNSET
    seconds_left: Rate | UnsetType | None = UNSET


class TablesAnswer(Struct, frozen=True):
    tables: list[TableStatus]


class HealthAnswer(Struct, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class ReadyAnswer(Struct, frozen=True):
    """Every table is ready."""

    ready: Literal[True] = True
