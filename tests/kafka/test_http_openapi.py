"""What the server answers is what its OpenAPI document says: Schemathesis makes the requests and the checks from it."""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.http.limits import Limits
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.cluster_routes import json_answer
from support.schemathesis_runs import EXAMPLES, NO_STREAMS, readable_output, schemathesis
from support.waiting import eventually

TOKEN = "write-0123456789abcdef"  # noqa: S105
CODECS = {
    "users": "key=string,value=json",
    "numbers": "key=int,value=int",
    "blobs": "key=bytes,value=bytes",
    "objects": "key=json,value=string",
}
KEYS = {"users": "a%2Fb", "numbers": "-7", "blobs": "AP8", "objects": "%5B1%5D"}
VALUES = {"users": b'{"n":1}', "numbers": b"7", "blobs": b'"AP8="', "objects": b'"text"'}


@pytest.fixture(scope="module")
def served(connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A table for each kind of key, with no patience for positions that are not reached."""
    wanted = [TableToServe.parse(f"{name}=openapi-{name},{codecs}") for name, codecs in CODECS.items()]
    for each in wanted:
        create_topic(connection, each.topic, partitions=3)
    folder = tmp_path_factory.mktemp("openapi")
    with running(connection, wanted, folder, Front(port=0), limits=Limits(wait_s=0.05)) as made:
        for table in made.tables:
            table.replica.wait_until_ready(120)
        yield made
    for each in wanted:
        delete_topic(connection, each.topic)


@pytest.mark.soak
def test_nothing_is_answered_that_the_document_does_not_say(served: Running) -> None:
    run = schemathesis(f"{served.url}/openapi.json", "--max-examples", str(EXAMPLES), *NO_STREAMS)
    assert run.returncode == 0, readable_output(run)
    # All but the streams, and the reading of the document itself.
    streams = len(CODECS) + 1
    assert f"Tested: {operations_of(document_of(served)) - streams - 1}\n" in run.stdout


@pytest.mark.long
def test_where_tokens_are_needed_the_document_says_so(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    create_topic(connection, topic_name, partitions=1)
    front = Front(port=0, tokens=Tokens(reading=[], writing=[TOKEN]))
    wanted = [TableToServe.parse(f"users={topic_name},short=true")]
    with running(connection, wanted, tmp_path, front, limits=Limits(wait_s=0.05)) as made:
        made.tables[0].replica.wait_until_ready(120)
        few = ("--max-examples", "2", "--phases", "examples,coverage", "-H", f"Authorization: Bearer {TOKEN}")
        run = schemathesis(f"{made.url}/openapi.json", *few, *NO_STREAMS)
    assert run.returncode == 0, readable_output(run)
    assert "❌" not in run.stdout
    assert "Tested: " in run.stdout


def lie_about_status(document: dict[str, Any]) -> None:
    del document["paths"]["/tables/users/rows/{key}"]["get"]["responses"]["404"]


def lie_about_header(document: dict[str, Any]) -> None:
    headers = document["paths"]["/tables/users/rows/{key}"]["get"]["responses"]["404"]["headers"]
    headers["etag"] = {"required": True, "schema": {"type": "string"}}


def lie_about_tokens(document: dict[str, Any]) -> None:
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]


def lie_about_code(document: dict[str, Any]) -> None:
    schema = document["paths"]["/tables/users/rows/{key}"]["get"]["responses"]["404"]["content"]["application/json"]
    schema["schema"]["properties"]["error"]["properties"]["code"]["enum"] = ["gone"]


@pytest.mark.parametrize(
    ("lie", "found"),
    [
        (lie_about_status, "Undocumented status code"),
        (lie_about_header, "Missing required response headers"),
        (lie_about_code, "Response violates schema"),
        (lie_about_tokens, "API accepts requests without authentication"),
    ],
)
def test_a_document_that_is_not_true_is_found_out(served: Running, tmp_path: Path, lie: Any, found: str) -> None:
    document = document_of(served)
    lie(document)
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    only = ("--include-name-regex", "^GET /tables(/users/rows/{key})?$", "--phases", "coverage")
    needless = ("-H", f"Authorization: Bearer {TOKEN}")
    run = schemathesis(str(tmp_path / "openapi.json"), "--url", served.url, *only, *needless)
    assert run.returncode == 1
    assert found in run.stdout


def test_the_events_of_a_stream_are_what_the_document_says(connection: Connection, served: Running) -> None:
    document = document_of(served)
    seen = Counter[str]()
    for table in served.tables:
        with (
            closing(ChangeReader(served.url, f"/tables/{table.name}/changes")) as one,
            closing(ChangeReader(served.url, f"/changes?tables={table.name}")) as several,
        ):
            # Bytes that this table's codecs may not be able to read.
            write(
                served,
                table.name,
                b'{"key_base64":"/w==","value_base64":"/w=="}\n{"key_base64":"/w==","tombstone":true}',
            )
            for reader, path in ((one, f"/tables/{table.name}/changes"), (several, "/changes")):
                answer = document["paths"][path]["get"]["responses"]["200"]
                assert reader.headers["content-type"] in answer["content"]
                assert set(answer["headers"]) <= set(reader.headers)
                events = answer["content"]["text/event-stream"]["schema"]["x-events"]
                for event in reader.take(2):
                    schema = {**events[event.name], "components": document["components"]}
                    jsonschema_rs.validate(schema, event.content)
                    assert ("table" in event.content) == (path == "/changes")
                    seen[event.name] += 1
    assert seen == {"put": 2 * len(CODECS), "delete": 2 * len(CODECS)}


def write(served: Running, table: str, lines: bytes) -> None:
    asking = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    asking.request("POST", f"/tables/{table}/rows", lines)
    assert asking.getresponse().status == 200
    asking.close()


def test_head_has_the_headers_of_get_and_no_body(served: Running) -> None:
    asking, seen = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60), 0
    eventually(lambda: json_answer(served.url, "/topics/openapi-users")[0] == 200)
    for table in CODECS:
        asking.request("PUT", f"/tables/{table}/rows/{KEYS[table]}", VALUES[table])
        place = json.loads(asking.getresponse().read())
        next(each for each in served.tables if each.name == table).replica.wait_for(place["position"])
    for path, methods in document_of(served)["paths"].items():
        if "get" not in methods or "text/event-stream" in methods["get"]["responses"]["200"]["content"]:
            continue
        table = path.split("/")[2] if path.startswith("/tables/") else "users"
        address = path.replace("{table}", "users").replace("{key}", KEYS.get(table, "")).replace("{file}", "index.html")
        address = address.replace("{topic}", "openapi-users")
        answers = []
        for method in ("GET", "HEAD"):
            asking.request(method, address)
            answer = asking.getresponse()
            # Every question changes the metrics a little, and the cluster is looked at meanwhile.
            passing = {"date", "content-length"} if path in ("/metrics", "/cluster", "/topics/{topic}") else {"date"}
            headers = sorted((name.lower(), text) for name, text in answer.getheaders() if name.lower() not in passing)
            answers.append((answer.status, headers, answer.read()))
        assert (answers[0][0], answers[0][:2], answers[1][2]) == (200, answers[1][:2], b""), path
        seen += 1
    asking.close()
    assert seen > 10


def document_of(served: Running) -> dict[str, Any]:
    with urllib.request.urlopen(f"{served.url}/openapi.json") as answer:  # noqa: S310
        document: dict[str, Any] = json.load(answer)
        return document


def operations_of(document: dict[str, Any]) -> int:
    return sum(len(methods) for methods in document["paths"].values())
