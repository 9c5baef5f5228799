"""A cluster of which a part is not answered: the rest is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics import cluster_description
from lastword.kafka.topics.cluster_description import describe_cluster
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import described_topics


def failing(is_meant: Callable[[str], bool]) -> Callable[[Connection, AdminClient, list[str]], dict[str, Future[Any]]]:
    """Asks the cluster, and has the answers for some topics fail."""

    def asked(connection: Connection, admin: AdminClient, names: list[str]) -> dict[str, Future[Any]]:
        answers = described_topics(connection, admin, names)
        for name in filter(is_meant, names):
            answers[name] = Future()
            answers[name].set_exception(KafkaException(KafkaError(KafkaError.TOPIC_EXCEPTION)))
        return answers

    return asked


def test_a_topic_that_can_not_be_described_does_not_hide_the_others(
    connection: Connection, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(connection, topic_name, partitions=1)
    create_topic(connection, f"{topic_name}-odd", partitions=1)
    try:
        monkeypatch.setattr(cluster_description, "described_topics", failing(lambda name: name.endswith("-odd")))
        topics = describe_cluster(connection, connection.admin()).topics
        assert topic_name in topics
        assert f"{topic_name}-odd" not in topics
    finally:
        delete_topic(connection, f"{topic_name}-odd")


def test_a_cluster_that_describes_no_topic_is_not_one_without_topics(
    connection: Connection, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(connection, topic_name, partitions=1)
    monkeypatch.setattr(cluster_description, "described_topics", failing(lambda _: True))
    with pytest.raises(LastwordError):
        describe_cluster(connection, connection.admin())


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
