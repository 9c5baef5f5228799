"""Topics that are deleted, and made anew under the same name, on a cluster that makes topics whenever one is named."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.core.errors import LastwordError, NotFound, TopicChanged
from lastword.core.row_json import Write
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import LoadStopped, load
from lastword.kafka.client.reading import read_log
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import list_topics
from support.command_line import JARS, CommandLine
from support.service_calls import ServiceAnswer, ask, served_table, service_of
from support.waiting import eventually


@pytest.fixture(scope="module")
def willing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A cluster that makes a topic as soon as a client names it."""
    folder = tmp_path_factory.mktemp("willing")
    with LocalCluster(name="willing", folder=folder, jars=JARS, owned=True, temporary=True) as cluster:
        cluster.start(port=0, settings={"auto.create.topics.enable": "true"})
        yield cluster.connection


@pytest.fixture
def topic(willing: Connection) -> str:
    name = f"users-{uuid.uuid4().hex[:12]}"
    create_topic(willing, name, partitions=3)
    return name


def names(connection: Connection) -> list[str]:
    return [topic.name for topic in list_topics(connection)]


def keys(connection: Connection, topic: str) -> list[bytes | None]:
    return [record.key for batch in read_log(connection, topic) for record in batch]


def test_the_cluster_of_these_tests_makes_a_topic_that_a_client_names(willing: Connection) -> None:
    """Without that the tests here would prove nothing."""
    asker = willing.producer(allow_auto_create_topics=True)
    asker.list_topics("made-by-its-name", timeout=30)
    eventually(lambda: "made-by-its-name" in names(willing))


def test_a_write_to_a_topic_that_is_gone_is_refused_and_makes_none(willing: Connection, topic: str) -> None:
    with Table(willing, topic) as table:
        table.put("a", 1)
        delete_topic(willing, topic)
        writes: list[Callable[[], object]] = [
            lambda: table.put("a", 2),
            lambda: table.delete("a"),
            lambda: table.put_many([("a", 3)]),
        ]
        for write in writes:
            with pytest.raises((NotFound, TopicChanged)):
                write()
    assert topic not in names(willing)


def test_an_open_table_does_not_write_to_another_topic_of_its_name(willing: Connection, topic: str) -> None:
    with Table(willing, topic) as table:
        table.put("a", 1)
        delete_topic(willing, topic)
        create_topic(willing, topic)
        with pytest.raises(TopicChanged):
            # A look of a moment ago may have let it pass; then the look after it does not.
            table.put("a", 2)
        before = keys(willing, topic)
        writes: list[Callable[[], object]] = [lambda: table.put("a", 3), lambda: table.delete("a")]
        for write in writes:
            with pytest.raises(TopicChanged, match="nothing was written"):
                write()
        assert keys(willing, topic) == before
    with Table(willing, topic) as table:
        table.put("b", 1)
    assert keys(willing, topic) == [*before, b"b"]


def test_each_of_several_writes_is_refused(willing: Connection, topic: str) -> None:
    with Writer(willing, topic, expected_id=lambda: "another-id") as writer, pytest.raises(TopicChanged):
        writer.write_all([Write(b"a", b"1"), Write(b"b", b"2")])
    assert keys(willing, topic) == []


def test_an_acknowledgement_of_another_topic_is_no_acknowledgement(willing: Connection, topic: str) -> None:
    same = SameTopic(willing, topic, patience_s=30)
    topic_id = same.before()
    same.after(topic_id)
    delete_topic(willing, topic)
    with pytest.raises(TopicChanged, match="was deleted during the write"):
        same.after(topic_id)
    create_topic(willing, topic)
    with pytest.raises(TopicChanged, match="made again"):
        same.after(topic_id)


def test_a_load_tells_that_its_topic_was_made_anew_in_the_midst_of_it(willing: Connection, topic: str) -> None:
    def rows() -> Iterator[Write]:
        yield Write(b"a", b"1")
        delete_topic(willing, topic)
        create_topic(willing, topic)
        yield Write(b"b", b"2")

    with pytest.raises(LoadStopped, match="load all of them again") as stopped:
        load(willing, topic, rows())
    assert (type(stopped.value.cause), stopped.value.acknowledged) == (TopicChanged, 0)


def test_a_load_leaves_nothing_of_its_queue_in_a_topic_that_was_made_anew(willing: Connection, topic: str) -> None:
    def rows() -> Iterator[Write]:
        for number in range(5000):
            if number == 1000:
                delete_topic(willing, topic)
                create_topic(willing, topic)
            yield Write(b"%d" % number, b"1")

    # The queue waits for longer than the test takes, so only a flush would send it. The second load does not look
    # before its end.
    for look_every in (100, 10_000):
        with pytest.raises(LoadStopped, match="made again") as stopped:
            load(willing, topic, rows(), linger_ms=100_000, look_every=look_every)
        assert (type(stopped.value.cause), keys(willing, topic)) == (TopicChanged, [])


def test_a_load_looks_at_its_topic_while_it_waits_for_its_last_records(willing: Connection, topic: str) -> None:
    def rows() -> Iterator[Write]:
        yield Write(b"a", b"1")
        delete_topic(willing, topic)

    with pytest.raises(LoadStopped, match="was deleted during the write") as stopped:
        load(willing, topic, rows(), linger_ms=100_000)
    assert type(stopped.value.cause) is TopicChanged


def test_a_mistake_in_the_rows_does_not_hide_that_the_topic_was_made_anew(willing: Connection, topic: str) -> None:
    def rows() -> Iterator[Write]:
        yield Write(b"a", b"1")
        delete_topic(willing, topic)
        create_topic(willing, topic)
        yield Write(b"", b"2")

    with pytest.raises(LoadStopped, match="load all of them again") as stopped:
        load(willing, topic, rows())
    assert (type(stopped.value.cause), stopped.value.acknowledged) == (TopicChanged, 0)


def test_the_command_line_makes_no_topic(willing: Connection, tmp_path: Path) -> None:
    line = CommandLine(home=tmp_path, environ={"LASTWORD_BOOTSTRAP_SERVERS": willing.bootstrap_servers})
    before = names(willing)
    for words in (["put", "nowhere", "a", "1"], ["delete", "nowhere", "a"], ["load", "nowhere", "-"]):
        done = line.run(*words, given='{"key": "a", "value": 1}\n')
        assert (done.returncode, "no topic 'nowhere'" in done.stderr) == (1, True), done
    for words in (["get", "nowhere", "a"], ["count", "nowhere"], ["records", "nowhere"], ["watch", "nowhere"]):
        assert line.run(*words).returncode == 1
    assert names(willing) == before


def test_a_served_table_writes_to_the_topic_that_it_shows_and_to_no_other(
    willing: Connection, topic: str, tmp_path: Path
) -> None:
    table = served_table(willing, topic, tmp_path)
    service = service_of(table)

    def put(key: str) -> ServiceAnswer:
        return ask(service, f"/tables/users/rows/{key}", "PUT", b"1", host="localhost")

    try:
        assert put("a").status == 200
        delete_topic(willing, topic)
        gone = [put("b"), ask(service, "/tables/users/rows/a", "DELETE")]
        gone.append(ask(service, "/tables/users/rows", "POST", b'{"key": "c", "value": 1}'))
        assert [(told.status, told.code) for told in gone] == [(409, "topic_changed")] * 3
        # The reader of the replica names the topic all the time.
        eventually(lambda: table.replica.state.name == "connecting")
        assert topic not in names(willing)

        create_topic(willing, topic)
        answers: list[ServiceAnswer] = []

        def is_taken() -> bool:
            answers.append(put(f"d{len(answers)}"))
            return answers[-1].status == 200

        eventually(is_taken)
        refused, taken = answers[:-1], f"d{len(answers) - 1}".encode()
        assert {told.code for told in refused} <= {"topic_changed"}
        assert keys(willing, topic) == [taken]
    finally:
        service.close()
        table.writes.close(5)
        table.replica.close()


def test_nobody_who_reads_makes_a_topic(willing: Connection) -> None:
    before = names(willing)
    with Table(willing, "nobody-made-it") as table:
        for read in (lambda: table.get("a"), table.count, lambda: next(table.watch())):
            with pytest.raises(LastwordError):
                read()
    consumer = willing.consumer()
    consumer.list_topics("nobody-made-it", timeout=30)
    consumer.close()
    willing.admin().list_topics("nobody-made-it", timeout=30)
    assert names(willing) == before
