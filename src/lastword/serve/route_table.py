"""The table of routes: adding a route to the server is adding a row here.

Dispatch, the methods that a path allows, the OpenAPI document and the list of routes in docs/http.md come from it.
A guest of the server adds rows of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import fields

from lastword.core.shapes.cluster import ClusterAnswer
from lastword.core.shapes.rows import CountAnswer, SentPage, SentRow, WriteAnswer, WritesAnswer
from lastword.core.shapes.tables import HealthAnswer, ReadyAnswer, TablesAnswer, TableStatus
from lastword.core.shapes.topics import CompactionBegun, TopicAnswer
from lastword.serve.changes.change_requests import ChangeRequests
from lastword.serve.changes.change_streams import Streams
from lastword.serve.cluster.cluster_requests import ClusterRequests
from lastword.serve.http.console_files import Console
from lastword.serve.http.queries import AllChangesQuery, ChangesQuery, PageQuery, PositionQuery, RowsQuery
from lastword.serve.http.routes import Access, Content, Route
from lastword.serve.server_status import ServerStatus
from lastword.serve.tables.table_requests import TableRequests


class Parts(NamedTuple):
    """What answers the requests."""

    tables: TableRequests
    changes: ChangeRequests
    cluster: ClusterRequests
    console: Console
    status: ServerStatus
    streams: Streams


_BAD_KEY = ("bad_key", "key_too_long")
_WAITS = ("bad_position", "too_many_waiting", "position_not_reached")
_READS = ("not_ready", "store_damaged", "too_many_unsent", "stopping", *_WAITS)
_WRITES = (
    *("not_conditional", "cross_origin", "value_too_large", "topic_changed", "write_failed", "cluster_unreachable"),
    *("not_enough_replicas", "too_many_writes", "stopping"),
)
_BODY = ("body_broken", "body_too_slow", "body_too_large")
_STREAMS = (
    *("position_gone", "too_many_streams", "cluster_unreachable", "not_ready", "store_damaged", "table_failed"),
    *("stopping", *_WAITS),
)
_OF_CLUSTER = ("bad_path", "no_such_route", "no_such_topic", "not_ready", "stopping")

ROUTES: tuple[Route[Parts], ...] = (
    Route(
        "tables",
        "GET",
        "/tables",
        lambda to: to.tables.list_tables,
        "The status of all tables that are served.",
        answer=TablesAnswer,
    ),
    Route(
        "table",
        "GET",
        "/tables/{table}",
        lambda to: to.tables.read_status,
        "The status of one table.",
        query=PositionQuery,
        answer=TableStatus,
        codes=("bad_path", "no_such_table", *_WAITS),
    ),
    Route(
        "row",
        "GET",
        "/tables/{table}/rows/{key}",
        lambda to: to.tables.read_row,
        "One row. Its `ETag` changes with every write of the key.",
        query=PositionQuery,
        answer=SentRow,
        codes=("bad_path", *_BAD_KEY, "key_not_found", *_READS),
    ),
    Route(
        "rows",
        "GET",
        "/tables/{table}/rows",
        lambda to: to.tables.read_rows,
        "Rows in the order of the keys' bytes, a page at a time. `start <= key < end`.",
        query=RowsQuery,
        answer=SentPage,
        codes=(*_BAD_KEY, "bad_cursor", *_READS),
    ),
    Route(
        "count",
        "GET",
        "/tables/{table}/count",
        lambda to: to.tables.count,
        "How many rows a table has, exactly.",
        query=PositionQuery,
        answer=CountAnswer,
        codes=("bad_path", "no_such_table", *_READS),
    ),
    Route(
        "row",
        "PUT",
        "/tables/{table}/rows/{key}",
        lambda to: to.tables.put_row,
        "Write the value in the body, in the JSON in which a row shows it; `null` is a value. The answer comes after "
        "all in-sync replicas have the record.",
        answer=WriteAnswer,
        access=Access.WRITE,
        codes=("bad_path", *_BAD_KEY, "bad_value", *_WRITES, *_BODY),
    ),
    Route(
        "row",
        "DELETE",
        "/tables/{table}/rows/{key}",
        lambda to: to.tables.delete_row,
        "Write a tombstone, whether or not the key is there.",
        answer=WriteAnswer,
        access=Access.WRITE,
        codes=("bad_path", *_BAD_KEY, *_WRITES),
    ),
    Route(
        "rows",
        "POST",
        "/tables/{table}/rows",
        lambda to: to.tables.write_lines,
        "Write JSON lines in the format of `load`; with a mistake in one line, none is written. The position covers "
        "all of them.",
        answer=WritesAnswer,
        access=Access.WRITE,
        codes=(*_BAD_KEY, "bad_line", *_WRITES, *_BODY),
    ),
    Route(
        "changes",
        "GET",
        "/tables/{table}/changes",
        lambda to: to.changes.of_one,
        "Puts and deletes from now on, or since a position, as [server-sent events](#changes).",
        answer=Content.EVENTS,
        query=ChangesQuery,
        codes=_STREAMS,
    ),
    Route(
        "all changes",
        "GET",
        "/changes",
        lambda to: to.changes.of_several,
        "The changes of several tables; each event names its own.",
        answer=Content.EVENTS,
        query=AllChangesQuery,
        codes=("no_such_table", *_STREAMS),
    ),
    Route(
        "short rows",
        "GET",
        "/{short}",
        lambda to: to.tables.read_values,
        "[All bare values](#all-rows-in-one-answer) in key order; a page of them with `limit` or `cursor`. An answer "
        'that breaks off is not whole. A page has `Link: rel="next"`.',
        answer=Content.VALUES,
        query=PageQuery,
        codes=("bad_cursor", *_READS),
    ),
    Route(
        "short count",
        "GET",
        "/{short}/count",
        lambda to: to.tables.count,
        "How many rows there are, exactly.",
        query=PositionQuery,
        answer=CountAnswer,
        codes=_READS,
    ),
    Route(
        "short row",
        "GET",
        "/{short}/{key}",
        lambda to: to.tables.read_value,
        "One bare value. A key named `count` has only the long route.",
        answer=Content.VALUE,
        query=PositionQuery,
        codes=("bad_path", *_BAD_KEY, "key_not_found", *_READS),
    ),
    Route(
        "cluster",
        "GET",
        "/cluster",
        lambda to: to.cluster.read_cluster,
        "The Kafka [cluster](#the-cluster) as it was seen last: brokers, topics, pipelines.",
        answer=ClusterAnswer,
    ),
    Route(
        "topic",
        "GET",
        "/topics/{topic}",
        lambda to: to.cluster.read_topic,
        "One topic: its settings, partitions and contents. The request has it counted: the next answer may have its "
        "census.",
        answer=TopicAnswer,
        codes=_OF_CLUSTER,
    ),
    Route(
        "compact",
        "POST",
        "/topics/{topic}/compact",
        lambda to: to.cluster.compact,
        "Compact a topic of a local cluster now; no body. How the compaction goes is in the answer about the topic.",
        answer=CompactionBegun,
        access=Access.WRITE,
        codes=(
            *_OF_CLUSTER,
            *("not_conditional", "cross_origin", "not_local", "not_compacted", "already_running", "too_large"),
        ),
    ),
    Route(
        "console",
        "GET",
        "/",
        lambda to: to.console.page,
        "The console, a page for a browser. It holds no data.",
        answer=Content.FILE,
        access=Access.OPEN,
    ),
    Route(
        "console file",
        "GET",
        "/console/{file}",
        lambda to: to.console.file,
        "A file of the console's page.",
        answer=Content.FILE,
        access=Access.OPEN,
        codes=("bad_path", "no_such_route"),
    ),
    Route(
        "health",
        "GET",
        "/health",
        lambda to: to.status.health,
        "The process answers.",
        answer=HealthAnswer,
        access=Access.OPEN,
    ),
    Route(
        "ready",
        "GET",
        "/ready",
        lambda to: to.status.ready,
        "Every table, and every guest, is ready; 503 until then.",
        answer=ReadyAnswer,
        access=Access.OPEN,
        codes=("not_ready",),
    ),
    Route(
        "metrics",
        "GET",
        "/metrics",
        lambda to: to.status.metrics,
        "Metrics in the text format of Prometheus.",
        answer=Content.TEXT,
    ),
    Route(
        "openapi",
        "GET",
        "/openapi.json",
        lambda to: to.status.openapi,
        "This API as OpenAPI 3.1, for the tables that this server serves: their keys and values by codec, the limits, "
        "every status and code.",
        answer=Content.DOCUMENT,
    ),
)


def routes_markdown(others: Iterable[Route[Any]] = ()) -> str:
    """The table of docs/http.md; `others` are the routes of guests."""
    rows = [f"| `{_address(route)}` | {route.doc} | {_fields(route)} |" for route in (*ROUTES, *others)]
    return "\n".join(["| route | meaning | answer |", "|---|---|---|", *rows])


def _address(route: Route[Any]) -> str:
    names = route.query.__struct_fields__
    query = f"?{'&'.join(f'{name}=' for name in names)}" if names else ""
    return f"{route.method} {route.path.replace('{short}', 'NAME')}{query}"


def _fields(route: Route[Any]) -> str:
    """The fields of a JSON answer; those that may be missing in brackets."""
    if isinstance(route.answer, Content):
        return route.answer.value
    if not isinstance(route.answer, type):
        return "JSON" if "application/json" in route.answer else Content.EVENTS.value
    found = fields(route.answer)
    return ", ".join(f"`{each.name}`" if each.default is not UNSET else f"(`{each.name}`)" for each in found)
