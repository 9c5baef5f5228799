"""The change streams of the OpenAPI document: server-sent events, whose content OpenAPI 3.1 has no words for.

So what stands in the `data` of each kind of event is in the field `x-events` of the stream's schema.
"""

from __future__ import annotations

from lastword.serve.openapi.operations import FRESH, WAITS, reading, refusal_schema
from lastword.serve.openapi.schemas import Described, Node, delete_name, put_name, ref

EVENTS = "text/event-stream"
# What a stream may end with; only the last of them also keeps one from beginning.
CUT = ("fell_behind", "table_failed", "stopping")

_BEGINS = ("position_gone", "too_many_streams", "cluster_unreachable", "not_ready", "store_damaged", "stopping", *WAITS)
_ID = "An event's id is the position after it: that of the whole table, so that a stream goes on where it was left."
_PLACE = "[0-9]{1,19}:[0-9]{1,19}"


def changes_path(table: Described) -> Node:
    after = {"schema": ref("position"), "example": "0:18,1:5"}
    return {
        f"/tables/{table.name}/changes": reading(
            f"{table.name}_changes",
            "What changes from now on, or since a position",
            _stream([table]),
            parameters=_resuming(after),
            codes=_BEGINS,
        )
    }


def all_changes_path(tables: list[Described]) -> Node:
    names = [table.name for table in tables]
    wanted = {
        "name": "tables",
        "in": "query",
        "description": "All of them where it is left out.",
        "style": "form",
        "explode": False,
        "schema": {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1},
    }
    one = f"[A-Za-z0-9_-]+=({_PLACE}(,{_PLACE})*)?"
    after = {"schema": {"type": "string", "pattern": f"^({one}(;{one})*)?$"}}
    return {
        "/changes": reading(
            "changes",
            "What changes in several tables; each event names its own",
            _stream(tables, several=True),
            parameters=[wanted, *_resuming(after)],
            codes=("no_such_table", *_BEGINS),
        )
    }


def _stream(tables: list[Described], *, several: bool = False) -> Node:
    events: Node = {
        "put": _any_of([put_name(table) for table in tables]),
        "delete": _any_of([delete_name(table) for table in tables]),
        "reset": ref("reset"),
        "cut": refusal_schema(CUT),
    }
    schema = {"type": "string", "description": _ID, "x-events": events}
    example = 'id: 0:18,1:5\nevent: put\ndata: {"key":"user-1","value":1,"partition":0,"offset":17,"timestamp":0}\n\n'
    content = {"schema": schema} if several else {"schema": schema, "example": example}
    # The position of several tables names each of them.
    headers = {"x-lastword-position": {"required": True, "schema": {"type": "string"}}} if several else FRESH
    return {"description": "Events until the client leaves.", "content": {EVENTS: content}, "headers": headers}


def _resuming(schema: Node) -> list[Node]:
    told = "The id of the last event that was taken: those after it are read again from Kafka."
    return [
        {"name": "after", "in": "query", "description": told, **schema},
        {"name": "last-event-id", "in": "header", "description": f"{told} Before `after`.", **schema},
    ]


def _any_of(names: list[str]) -> Node:
    distinct = [ref(name) for name in dict.fromkeys(names)]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
