"""The OpenAPI document says what the routes, the limits and the page on HTTP say: nothing less and nothing more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lastword.cli.serve import SHORT_NAMES
from lastword.console import page_files
from lastword.serve.guest import Guest, guest_routes
from lastword.serve.http.answers import Refused
from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.http.queries import parsed
from lastword.serve.http.routes import Access, Endpoint, Route
from lastword.serve.openapi.document import document
from lastword.serve.route_table import ROUTES
from lastword.serve.running import TableToServe
from lastword.teams.serving.board_guest import AbsentBoard, BoardGuest
from support.routing import endpoint

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text()
TABLES = [
    TableToServe.parse(text)
    for text in (
        "users=a,short=true",
        "numbers=b,key=int,value=int",
        "blobs=c,key=bytes,value=bytes",
        "objects=d,key=json",
    )
]
FILES = page_files()
BOARD = BoardGuest(lambda _: None)


def described(tables: list[TableToServe], limits: Limits, guests: Sequence[Guest] = (), **options: Any) -> bytes:
    routes: list[Route[Any]] = [*ROUTES, *guest_routes(guest for guest in guests if guest.is_present)]
    return document(routes, tables, limits, FILES, guests=guests, **options)


DOCUMENT: dict[str, Any] = json.loads(described(TABLES, Limits(), guests=[BOARD]))
GUARDED: dict[str, Any] = json.loads(described(TABLES, Limits(), guarded=True, guests=[BOARD]))
METHODS = ("get", "head", "put", "post", "delete", "patch", "options", "trace")


def operations(document: dict[str, Any] = DOCUMENT) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def address_of(path: str) -> str:
    return (
        path.replace("{table}", "users").replace("{key}", "1").replace("{file}", "index.html").replace("{topic}", "a")
    )


def endpoint_of(path: str) -> Endpoint:
    """What answers a path of the document."""
    return endpoint(address_of(path), *BOARD.routes)


def codes_in(node: Any) -> Iterator[str]:
    """The codes that the schema of an error allows, wherever it stands."""
    if isinstance(node, dict):
        if isinstance(node.get("code"), dict) and "enum" in node["code"]:
            yield from node["code"]["enum"]
        for each in node.values():
            yield from codes_in(each)
    elif isinstance(node, list):
        for each in node:
            yield from codes_in(each)


def test_the_document_is_openapi() -> None:
    # Here, because each worker imports this file, and one of them runs this test.
    import schemathesis

    for each in (DOCUMENT, GUARDED):
        schemathesis.openapi.from_dict(each).validate()
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))


def test_every_route_is_there() -> None:
    routes: list[Route[Any]] = [*ROUTES, *BOARD.routes]
    names = {route.name for route in routes}
    assert {endpoint_of(path).name for path in DOCUMENT["paths"]} == names


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_a_path_has_the_methods_that_its_route_takes(path: str) -> None:
    assert set(DOCUMENT["paths"][path]) == {method.lower() for method in endpoint_of(path).methods}


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_a_path_has_the_parameters_that_its_route_knows(path: str) -> None:
    method, operation = next(iter(DOCUMENT["paths"][path].items()))
    with pytest.raises(Refused) as refused:
        parsed("unknown=1", endpoint_of(path).bound(method.upper()).route.query, Limits())
    known = set(refused.value.hint.removeprefix("this path takes: ").split(", ")) - {"none"}
    parameters = operation.get("parameters", [])
    no_prefix = {"prefix"} if path in ("/tables/numbers/rows", "/tables/objects/rows") else set()
    assert {each["name"] for each in parameters if each["in"] == "query"} == known - no_prefix


def test_the_codes_and_statuses_are_those_of_the_table() -> None:
    told = {
        # What a stream ends with comes after a status of 200.
        (str(ERROR_CODES[code].status) if status == "200" else status, code)
        for _, _, operation in (*operations(), *operations(GUARDED))
        for status, answer in operation["responses"].items()
        for code in codes_in(answer)
    }
    told |= {
        (status, code)
        for status, name in (("404", "no_such_route"), ("405", "method_not_allowed"))
        for code in codes_in(DOCUMENT["components"]["responses"][name])
    }
    assert told == {(str(row.status), code) for code, row in ERROR_CODES.items()}
    # The short routes tell no code: their statuses are those of the long ones.
    for short, long in (("/users", "/tables/users/rows"), ("/users/{key}", "/tables/users/rows/{key}")):
        paths = DOCUMENT["paths"]
        assert set(paths[short]["get"]["responses"]) == set(paths[long]["get"]["responses"])


def test_the_routes_are_those_of_the_page() -> None:
    on_page = set(re.findall(r"^\| `([A-Z]+) (/[^`? ]*)", PAGE, re.MULTILINE))
    of_one = "/tables/(users|numbers|blobs|objects)"
    documented = {
        (method.upper(), re.sub("^/users", "/NAME", re.sub(of_one, "/tables/{table}", path)))
        for path, method, _ in operations()
        if method != "head"
    }
    assert documented == on_page


def test_a_token_is_needed_everywhere_but_for_health_readiness_and_the_page() -> None:
    assert (GUARDED["security"], DOCUMENT.get("security")) == ([{"token": []}], None)
    for path, method, operation in operations(GUARDED):
        is_open = path in ("/health", "/ready", "/", "/console/{file}")
        assert is_open == (endpoint_of(path).bound(method.upper()).route.access is Access.OPEN)
        assert ("401" in operation["responses"]) == (operation.get("security") != []) == (not is_open)
        codes = set(codes_in(operation["responses"]))
        assert ("forbidden" in codes) == (method in ("put", "post", "delete"))
        # Whoever has a token may come by any name.
        assert "bad_host" not in codes


def test_limits_are_in_the_schemas() -> None:
    made = json.loads(described(TABLES, Limits(key_bytes=7, page_rows=5, body_bytes=99)))
    paths = made["paths"]
    (key,) = [each for each in paths["/tables/users/rows/{key}"]["get"]["parameters"] if each["name"] == "key"]
    (limit,) = [each for each in paths["/users"]["get"]["parameters"] if each["name"] == "limit"]
    body = paths["/tables/users/rows"]["post"]["requestBody"]["content"]["application/x-ndjson"]["schema"]
    assert (key["schema"]["maxLength"], limit["schema"]["maximum"], body["maxLength"]) == (7, 5, 99)
    assert made["components"]["schemas"]["page_string_json"]["properties"]["rows"]["maxItems"] == 5


@pytest.mark.parametrize(
    ("option", "has_short_routes"),
    [("users=a", True), ("users=a,short=false", False), ("other=a", False), ("other=a,short=true", True)],
)
def test_the_short_routes_are_there_only_for_a_table_with_the_option(option: str, has_short_routes: bool) -> None:
    table = TableToServe.parse(option, short_names=SHORT_NAMES)
    made = json.loads(described([table], Limits()))
    short = [f"/{table.name}", f"/{table.name}/count", f"/{table.name}/{{key}}"] if has_short_routes else []
    assert [path for path in made["paths"] if path.startswith(f"/{table.name}")] == short


def test_the_routes_of_the_board_are_there_only_where_it_is_served() -> None:
    for guests in ([], [AbsentBoard()]):
        made = json.loads(described(TABLES, Limits(), guests=guests))
        assert [path for path in made["paths"] if path.startswith("/board")] == []
        schemas = made["components"]["schemas"]
        assert ("BoardAnswer" in schemas, "board" in schemas["ClusterAnswer"]["properties"]) == (False, bool(guests))


def test_every_example_is_of_its_schema() -> None:
    seen = 0
    for _, _, operation in operations():
        for answer in operation["responses"].values():
            for media in answer.get("content", {}).values():
                if "example" in media:
                    schema = {**media["schema"], "components": DOCUMENT["components"]}
                    jsonschema_rs.validate(schema, media["example"])
                    seen += 1
    assert seen > 10


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ("row_string_json", {"key": "a", "partition": 0, "offset": 1, "timestamp": 2}),
        ("row_string_json", {"key": "a", "value_base64": "AA==", "partition": 0, "offset": 1, "timestamp": 2}),
        ("row_int_int", {"key": "a", "value": 1, "partition": 0, "offset": 1, "timestamp": 2}),
        ("line_string_json", {"key": "a", "value": 1, "tombstone": True}),
        ("line_string_json", {"key": "a"}),
        ("position", "0:1,"),
    ],
)
def test_a_schema_refuses_what_is_never_answered(schema: str, instance: Any) -> None:
    node = {"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]}
    assert not jsonschema_rs.is_valid(node, instance)
