"""Addresses to routes, queries and keys: pure functions, and the one shape of what they refuse."""

from __future__ import annotations

import base64
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.serve.changes.change_requests import ChangeRequests
from lastword.serve.cluster.cluster_requests import ClusterRequests
from lastword.serve.http.answers import Refused
from lastword.serve.http.console_files import Console
from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.http.queries import RowsQuery, parsed
from lastword.serve.http.routes import Access, Content, Route
from lastword.serve.route_table import ROUTES, Parts
from lastword.serve.running import Front, TableToServe, running
from lastword.serve.server_status import ServerStatus
from lastword.serve.service import Service
from lastword.serve.tables.keys import base64url, from_base64url, key_of, prefix_of
from lastword.serve.tables.table_requests import TableRequests
from lastword.teams.serving.board_guest import AbsentBoard
from support.addresses import ADDRESSES, GUEST_ADDRESSES, METHODS, NAMELESS, allowed
from support.routing import endpoint, router
from support.service_calls import ask

LIMITS = Limits()
# The classes instead of their objects: enough to see which handlers there are.
PARTS: Any = Parts(TableRequests, ChangeRequests, ClusterRequests, Console, ServerStatus, None)  # type: ignore[arg-type]


def rows_query(query: str) -> RowsQuery:
    return parsed(query, RowsQuery, LIMITS)


@pytest.mark.parametrize(
    ("path", "name", "names"),
    [
        ("/tables", "tables", ()),
        ("/tables/users", "table", ("users",)),
        ("/tables/users/count", "count", ("users",)),
        ("/tables/users/rows", "rows", ("users",)),
        ("/tables/users/rows/user-1", "row", ("users", "user-1")),
        ("/tables/users/rows/a/b//c", "row", ("users", "a/b//c")),
        ("/tables/users/rows/..", "row", ("users", "..")),
        ("/tables/users/rows/count", "row", ("users", "count")),
        ("/tables/users/rows/", "row", ("users", "")),
        ("/users", "short rows", ("users",)),
        ("/users/count", "short count", ("users",)),
        ("/users/user-1", "short row", ("users", "user-1")),
        ("/health", "health", ()),
        ("/ready", "ready", ()),
        ("/openapi.json", "openapi", ()),
        ("/", "console", ()),
        ("/cluster", "cluster", ()),
        ("/topics/user-profiles", "topic", ("user-profiles",)),
        ("/topics/user-profiles/compact", "compact", ("user-profiles",)),
        ("/console/views/board.js", "console file", ("views/board.js",)),
    ],
)
def test_a_path_names_a_route(path: str, name: str, names: tuple[str, ...]) -> None:
    endpoint, found = router().match(path)
    assert (endpoint.name, found) == (name, names)


@pytest.mark.parametrize("path", ["/users", "/users/count", "/users/user-1", "/users/"])
def test_a_table_without_short_routes_has_none(path: str) -> None:
    for short in ((), {"people"}, {"user"}):
        with pytest.raises(Refused) as refused:
            router(short).match(path)
        assert refused.value.code == "no_such_route"


@pytest.mark.parametrize("option", ["users=a,short=yes", "users=a,short=", "users=a,short"])
def test_an_option_short_that_is_neither_true_nor_false_is_refused(option: str) -> None:
    with pytest.raises(BadInput, match="short must be true or false"):
        TableToServe.parse(option)


def test_a_table_whose_name_begins_other_paths_has_no_short_routes(tmp_path: Path) -> None:
    for name in ("tables", "topics", "health", "board"):
        wanted = [TableToServe.parse(f"{name}=a,short=true")]
        with (
            pytest.raises(BadInput, match=f"the table '{name}' can't have short routes"),
            running(
                Connection(bootstrap_servers="127.0.0.1:1"), wanted, tmp_path, Front(port=0), guests=[AbsentBoard()]
            ),
        ):
            pass


@pytest.mark.parametrize(
    "path",
    [
        "",
        "*",
        "//",
        "//tables",
        "/Tables",
        "x/tables/users",
        "/tables/../etc/passwd",
        "/tables/users/x",
        "/health/",
        "/topics",
        "/topics/a/b",
    ],
)
def test_a_path_that_names_nothing_is_not_found(path: str) -> None:
    with pytest.raises(Refused) as refused:
        router().match(path)
    assert (refused.value.status, refused.value.code) == (404, "no_such_route")


def test_a_path_that_was_not_utf8_is_refused_and_not_taken_for_another_key() -> None:
    with pytest.raises(Refused) as refused:
        router().match("/tables/users/rows/a\ufffd")
    assert (refused.value.status, refused.value.code) == (400, "bad_path")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/tables", "GET, HEAD"),
        ("/tables/users/rows", "GET, HEAD, POST"),
        ("/tables/users/rows/a", "GET, HEAD, PUT, DELETE"),
        ("/users/a", "GET, HEAD"),
        ("/topics/a", "GET, HEAD"),
        ("/topics/a/compact", "POST"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_answered_with_those_it_takes(path: str, allowed: str) -> None:
    methods = allowed.split(", ")
    for method in methods:
        is_write = endpoint(path).bound(method).route.access is Access.WRITE
        assert is_write == (method not in ("GET", "HEAD"))
    for method in {"GET", "PUT", "DELETE", "POST", "BREW", "get"} - {*methods}:
        with pytest.raises(Refused) as refused:
            endpoint(path).bound(method)
        assert (refused.value.status, refused.value.headers) == (405, [("allow", allowed)])


def test_an_error_has_one_shape_and_the_short_routes_give_its_message_alone() -> None:
    refused = Refused("key_not_found", "no such key", "look")
    status, headers, body = refused.answer()
    assert (status, json.loads(body)) == (
        404,
        {"error": {"code": "key_not_found", "message": "no such key", "hint": "look"}},
    )
    assert ("content-type", "application/json") in headers
    assert json.loads(refused.answer(short=True).body) == {"error": "no such key"}


def test_a_query_is_decoded_by_name() -> None:
    given = rows_query("prefix=a%2Fb+c%26&limit=5&&start=%C3%A9")
    assert given == RowsQuery(prefix="a/b c&", limit="5", start="é")


@pytest.mark.parametrize(
    "query", ["min_postion=0:1", "prefix=%zz", "prefix=%f", "prefix=%ff", "limit=1&limit=2", "%70refix=a"]
)
def test_a_query_that_is_not_understood_is_refused(query: str) -> None:
    with pytest.raises(Refused) as refused:
        rows_query(query)
    assert (refused.value.status, refused.value.code) == (400, "bad_query")


def test_a_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        rows_query("prefix=" + "a" * LIMITS.query_bytes)
    assert (refused.value.status, refused.value.code) == (414, "query_too_long")


@pytest.mark.parametrize(
    ("codec", "text", "key"),
    [
        ("string", "é/%2F", "é/%2F".encode()),
        ("bytes", "AP-_", b"\x00\xff\xbf"),
        ("bytes", "AA==", b"\x00"),
        ("int", "-2", b"\xff" * 7 + b"\xfe"),
        ("json", '{"id": 1}', b'{"id": 1}'),
    ],
)
def test_a_key_goes_through_the_codec_of_its_table(codec: str, text: str, key: bytes) -> None:
    assert key_of(text, codec_named(codec), LIMITS) == key


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("string", ""),
        ("bytes", "a*/b"),
        ("bytes", "A"),
        ("bytes", "AB"),
        ("bytes", "AA="),
        ("bytes", "AAAA=="),
        ("int", "1_000"),
        ("int", " 1"),
        ("int", "٣"),
        ("int", "9223372036854775808"),
        ("json", "{"),
    ],
)
def test_a_key_that_the_codec_does_not_take_is_refused(codec: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        key_of(text, codec_named(codec), LIMITS)
    assert (refused.value.status, refused.value.code) == (400, "bad_key")


def test_a_key_is_limited_by_its_bytes_and_not_by_its_letters() -> None:
    limits = Limits(key_bytes=4)
    assert key_of("éé", codec_named("string"), limits) == "éé".encode()
    with pytest.raises(Refused) as refused:
        key_of("ééa", codec_named("string"), limits)
    assert (refused.value.status, refused.value.code) == (414, "key_too_long")


def test_a_prefix_is_only_for_keys_that_have_parts() -> None:
    assert [prefix_of("", codec_named(name), LIMITS) for name in ("string", "int", "json")] == [b""] * 3
    assert prefix_of("AA", codec_named("bytes"), LIMITS) == b"\x00"
    with pytest.raises(Refused, match="codec int"):
        prefix_of("1", codec_named("int"), LIMITS)


@pytest.mark.parametrize("raw", [b"", b"\x00", b"\xfb\xff\xfe", b"user-1"])
def test_base64url_goes_both_ways(raw: bytes) -> None:
    assert from_base64url(base64url(raw)) == raw
    # As rows show it.
    assert from_base64url(base64.b64encode(raw).decode()) == raw


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="key_bytes=0"):
        Limits(key_bytes=0)


def test_every_kind_of_route_has_an_address_that_is_tried_with_every_method() -> None:
    assert {route.name for route in ROUTES} == {*ADDRESSES}
    assert {kind: endpoint(path).name for kind, path in ADDRESSES.items()} == {kind: kind for kind in ADDRESSES}


@pytest.mark.parametrize("kind", ADDRESSES)
def test_a_method_that_a_route_does_not_take_is_refused_with_those_it_takes(kind: str) -> None:
    refusal = (405, ", ".join(allowed(kind)))
    service = Service([], LIMITS)
    for method in {*METHODS} - {*allowed(kind)}:
        with pytest.raises(Refused) as refused:
            endpoint(ADDRESSES[kind]).bound(method)
        assert (refused.value.status, dict(refused.value.headers)["allow"]) == refusal
        if not kind.startswith("short"):  # which a service without tables does not have
            told = ask(service, ADDRESSES[kind], method, b"1")
            assert (told.status, told.headers.get("allow")) == refusal
    service.close()


@pytest.mark.parametrize("path", GUEST_ADDRESSES.values())
def test_a_route_of_a_guest_is_only_read(path: str) -> None:
    service = Service([], LIMITS, guests=[AbsentBoard()])
    for method in {*METHODS} - {"GET", "HEAD"}:
        told = ask(service, path, method, b"1")
        assert (told.status, told.headers.get("allow")) == (405, "GET, HEAD")
    service.close()


@pytest.mark.parametrize("path", NAMELESS)
def test_an_empty_name_names_nothing_whatever_the_method(path: str) -> None:
    service = Service([], LIMITS)
    assert {ask(service, path, method, b"1").status for method in METHODS} == {404}
    assert ask(service, path, "PUT", b"1").code == "no_such_route"
    service.close()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_row_of_the_table_of_routes_is_whole(route: Route[Any]) -> None:
    assert route.doc[0].isupper() or route.doc[0] == "["
    assert route.doc.endswith(".")
    assert set(route.codes) <= {*ERROR_CODES}
    # What writes is no GET, and what is open shows nothing that needs a token.
    assert (route.access is Access.WRITE) == (route.method != "GET")
    # The rest of a request is of the handler: a name in the path is an argument after the request and the query.
    names = re.findall(r"{\w+}", route.path)
    handler = inspect.signature(route.handler(PARTS))
    assert len(handler.parameters) == 3 + len(names)
    assert str(list(handler.parameters.values())[2].annotation) == route.query.__name__


def test_a_row_of_another_form_than_the_router_knows_is_a_mistake() -> None:
    with pytest.raises(NotImplementedError):
        router(
            others=[
                Route(
                    "x", "GET", "/a/{b}/{c}", lambda parts: parts.tables.count, "A path with two names.", Content.TEXT
                )
            ]
        )


def test_two_rows_for_one_method_of_a_path_are_a_mistake() -> None:
    (metrics,) = (route for route in ROUTES if route.path == "/metrics")
    with pytest.raises(ValueError, match="two routes for GET /metrics"):
        router(others=[metrics])


def test_changes_of_all_tables_where_none_is_served_are_refused() -> None:
    service = Service([], LIMITS)
    answer = ask(service, "/changes")
    assert (answer.status, answer.code) == (404, "no_such_table")
    service.close()
