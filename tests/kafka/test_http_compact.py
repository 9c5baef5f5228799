"""Compaction on demand over HTTP: what it did, what it refuses, and how it is ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lastword.core.shapes.topics import CompactionStatus, TopicSize
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import alter_settings, topic_identity
from lastword.kafka.compaction.journal import JournalEntry, SettingChange, claimed, has_entry
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.cluster.topic_compactions import Compacting
from lastword.serve.http.answers import Refused
from lastword.serve.http.tokens import Tokens
from lastword.serve.running import Front, Running, TableToServe, running
from support.cluster_routes import home_of, json_answer
from support.compacted_logs import committed, make_topic, set_on_topic, write
from support.waiting import eventually

READING, WRITING = "read-0123456789abcdef", "write-0123456789abcdef"
RECORDS = [("user-1", "v1"), ("user-2", "v1"), ("user-1", "v2"), ("user-3", "v1"), ("user-1", "v3")]


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    make_topic(connection, topic_name, partitions=1, segment_ms=60_000)
    write(connection, topic_name, RECORDS)
    return topic_name


@pytest.fixture
def served(cluster: LocalCluster, topic: str, tmp_path: Path) -> Iterator[Running]:
    wanted, home = [TableToServe.parse(f"users={topic},value=string")], home_of(cluster, tmp_path)
    with running(cluster.connection, wanted, tmp_path / "data", Front(port=0), home=home) as made:
        await_seen(made.url, topic)
        yield made


def await_seen(url: str, topic: str, **headers: str) -> None:
    eventually(lambda: json_answer(url, f"/topics/{topic}", **headers)[0] == 200)


def begin(compacting: Compacting, connection: Connection, topic: str) -> None:
    cluster_id = str(connection.reach().cluster_id)
    compacting.begin(topic, TopicSize(bytes=None, records=None), topic_id=f"id of {topic}", cluster_id=cluster_id)


def of(compacting: Compacting, topic: str) -> CompactionStatus | None:
    return compacting.of(f"id of {topic}")


def refusal(url: str, topic: str, **headers: str) -> tuple[int, Any]:
    status, content = json_answer(url, f"/topics/{topic}/compact", "POST", **headers)
    return status, content["error"]["code"]


def test_a_topic_is_compacted_and_what_came_of_it_is_told_with_the_topic(
    connection: Connection, served: Running, topic: str
) -> None:
    def seen() -> Any:
        return json_answer(served.url, f"/topics/{topic}")[1]

    eventually(lambda: seen()["census"] is not None)
    assert (seen()["census"]["records"], seen()["compaction"]) == (5, None)
    settings = set_on_topic(connection, topic)
    status, begun = json_answer(served.url, f"/topics/{topic}/compact", "POST")
    assert (status, begun["state"], begun.keys()) == (202, "running", {"state", "began"})
    assert seen()["compaction"]["began"] == begun["began"]

    eventually(lambda: seen()["compaction"]["state"] != "running")

    done = seen()["compaction"]
    assert (done["state"], done["step"], done["why"], done["ended"] >= done["began"]) == ("done", "recount", None, True)
    assert (done["before"]["records"], done["after"]["records"]) == (5, 3)
    assert [record.value for record in committed(connection, topic)] == [b"v1", b"v1", b"v3"]
    assert set_on_topic(connection, topic) == settings
    # Counted anew, although it was counted a moment ago.
    eventually(lambda: seen()["census"]["records"] == 3, within_s=15)
    components = json_answer(served.url, "/openapi.json")[1]["components"]
    jsonschema_rs.validate({"$ref": "#/components/schemas/TopicAnswer", "components": components}, seen())


def test_what_can_not_be_compacted_is_refused(connection: Connection, served: Running, topic: str) -> None:
    other = f"{topic}-deleted"
    create_topic(connection, other, partitions=1, settings={"cleanup.policy": "delete"})
    try:
        await_seen(served.url, other)
        assert refusal(served.url, other) == (409, "not_compacted")
    finally:
        delete_topic(connection, other)
    assert refusal(served.url, "nowhere") == (404, "no_such_topic")
    assert refusal(served.url, topic, origin="http://evil.example") == (403, "cross_origin")
    assert json_answer(served.url, f"/topics/{topic}/compact")[0] == 405
    assert json_answer(served.url, f"/topics/{topic}")[1]["compaction"] is None


def test_it_needs_a_token_that_may_write_and_a_cluster_of_the_home(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    front = Front(port=0, tokens=Tokens(reading=[READING], writing=[WRITING]))
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, front) as made:
        await_seen(made.url, topic, authorization=f"Bearer {READING}")
        assert refusal(made.url, topic) == (401, "unauthorized")
        assert refusal(made.url, topic, authorization=f"Bearer {READING}") == (403, "forbidden")
        assert refusal(made.url, topic, authorization=f"Bearer {WRITING}") == (409, "not_local")


def test_while_one_runs_no_other_begins_and_its_end_puts_the_settings_back(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    # The cleaner leaves the records alone for longer than the test takes, and not for longer than is waited for them.
    make_topic(connection, topic_name, min_compaction_lag_ms=50_000)
    write(connection, topic_name, RECORDS)
    settings, ended = set_on_topic(connection, topic_name), list[str]()
    compacting = Compacting(connection, tmp_path, ended=ended.append)
    begin(compacting, connection, topic_name)

    def step() -> str | None:
        status = of(compacting, topic_name)
        return None if status is None else status.step

    eventually(lambda: step() == "wait")
    with pytest.raises(Refused, match=f"{topic_name} is being compacted") as refused:
        begin(compacting, connection, "another")
    assert (refused.value.status, refused.value.code) == (409, "already_running")
    assert set_on_topic(connection, topic_name) != settings

    compacting.close()

    status = of(compacting, topic_name)
    assert status is not None
    assert (status.state, status.why, ended) == ("failed", "the server was stopped", [topic_name])
    assert set_on_topic(connection, topic_name) == settings
    assert "compacting" not in {thread.name for thread in threading.enumerate()}


def test_a_failure_is_told_in_words_without_an_address(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    ended = list[str]()
    compacting = Compacting(connection, tmp_path, ended=ended.append)
    begin(compacting, connection, topic_name)
    eventually(lambda: bool(ended))
    compacting.close()
    status = of(compacting, topic_name)
    assert status is not None
    assert (status.state, status.why) == ("failed", "the topic is gone")


def test_a_topic_that_is_made_anew_was_not_compacted_yet(connection: Connection, served: Running, topic: str) -> None:
    def seen() -> Any:
        status, content = json_answer(served.url, f"/topics/{topic}")
        return content if status == 200 else {"compaction": ...}

    assert json_answer(served.url, f"/topics/{topic}/compact", "POST")[0] == 202
    eventually(lambda: seen()["compaction"]["state"] != "running")
    delete_topic(connection, topic)
    make_topic(connection, topic, partitions=1)
    eventually(lambda: seen()["compaction"] is None)


def test_one_that_gets_no_thread_leaves_nothing_that_runs(
    connection: Connection, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ended = list[str]()
    compacting = Compacting(connection, tmp_path, ended=ended.append)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            begin(compacting, connection, topic_name)
    assert of(compacting, topic_name) is None
    begin(compacting, connection, topic_name)
    eventually(lambda: bool(ended))
    compacting.close()


def test_settings_that_could_not_be_put_back_at_its_end_are_put_back_later_by_the_server(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, segment_ms=60_000)
    settings, ended, admin = set_on_topic(connection, topic_name), list[str](), connection.admin()
    cluster_id = str(connection.reach(admin).cluster_id)
    compacting = Compacting(connection, tmp_path, ended=ended.append, again_s=0.2)
    with claimed(tmp_path, cluster_id, topic_name) as claim:
        changes = {"segment.ms": SettingChange(before="60000", during="1000")}
        identity = topic_identity(admin, topic_name)
        claim.write(JournalEntry(cluster_id=cluster_id, topic=topic_name, topic_id=identity, changes=changes))
        alter_settings(admin, topic_name, {"segment.ms": "1000"})
        # It ends at once, because of the claim, and so without the settings as they were.
        begin(compacting, connection, topic_name)
        eventually(lambda: bool(ended))
        assert set_on_topic(connection, topic_name) != settings
    try:
        eventually(lambda: not has_entry(tmp_path, cluster_id, topic_name))
        assert set_on_topic(connection, topic_name) == settings
    finally:
        compacting.close()
