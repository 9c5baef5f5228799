"""A cluster of which a part is not answered: the rest is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.cluster_description import describe_cluster
from lastword.kafka.topics.topic_changes import create_topic, delete_topic


class FailingAdmin(AdminClient):
    """Asks the cluster, and has the descriptions of some topics fail."""

    def __init__(self, connection: Connection, *, fails: Callable[[str], bool]) -> None:
        super().__init__({"bootstrap.servers": connection.bootstrap_servers, **connection.properties})
        self._fails = fails

    # The stub knows only the compiled method of this name.
    def describe_topics(  # type: ignore[override]
        self, topics: TopicCollection, **options: Any
    ) -> dict[str, Future[Any]]:
        answers: dict[str, Future[Any]] = super().describe_topics(topics, **options)
        for name in filter(self._fails, answers):
            answers[name] = Future()
            answers[name].set_exception(KafkaException(KafkaError(KafkaError.TOPIC_EXCEPTION)))
        return answers


def test_a_topic_that_can_not_be_described_does_not_hide_the_others(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    create_topic(connection, f"{topic_name}-odd", partitions=1)
    try:
        admin = FailingAdmin(connection, fails=lambda name: name.endswith("-odd"))
        topics = describe_cluster(connection, admin).topics
        assert topic_name in topics
        assert f"{topic_name}-odd" not in topics
    finally:
        delete_topic(connection, f"{topic_name}-odd")


def test_a_cluster_that_describes_no_topic_is_not_one_without_topics(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    with pytest.raises(LastwordError):
        describe_cluster(connection, FailingAdmin(connection, fails=lambda _: True))


def test_trouble_with_the_client_that_asks_for_sizes_leaves_them_unknown_and_nothing_else(
    connection: Connection, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("no such api key")

    create_topic(connection, topic_name, partitions=1)
    # Which has it loaded, too.
    assert describe_cluster(connection, connection.admin()).topics[topic_name].bytes_on_disk == 0
    monkeypatch.setattr("kafka.KafkaAdminClient.describe_log_dirs", broken)
    topic = describe_cluster(connection, connection.admin()).topics[topic_name]
    assert (topic.partitions[0].end_offset, topic.bytes_on_disk) == (0, None)
    assert topic.no_sizes_because == "sizes on disk are not known: asking for them failed with AssertionError"
