"""Topics on a real cluster: made compacted, changed with care, described by weight, and gone when deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.log_dirs import sizes_on_disk
from lastword.kafka.topics.topic_changes import alter_topic, create_topic, delete_topic
from lastword.kafka.topics.topic_description import describe_topic, list_topics

USER_PROFILES = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "10s",
    "delete.retention.ms": "100ms",
}


def write(connection: Connection, topic: str, *keys: str) -> None:
    producer = connection.producer()
    for key in keys:
        producer.produce(topic, b"value", key.encode())
    assert producer.flush(30) == 0


def values(connection: Connection, topic: str, *names: str) -> list[str]:
    settings = describe_topic(connection, topic).settings
    return [settings[name].value for name in names]


def test_a_topic_is_compacted_with_three_partitions_unless_told_otherwise(
    connection: Connection, topic_name: str
) -> None:
    created = create_topic(connection, topic_name)
    assert (created.partitions, created.settings, created.warnings) == (3, {"cleanup.policy": "compact"}, ())
    described = describe_topic(connection, topic_name)
    assert described.settings["cleanup.policy"].value == "compact"
    assert described.replication == created.replication == min(3, len(connection.reach().brokers))


def test_the_user_profile_topic_is_described_with_every_setting_and_where_it_comes_from(
    connection: Connection, topic_name: str
) -> None:
    created = create_topic(connection, topic_name, settings=USER_PROFILES)
    assert len(created.warnings) == 3
    settings = describe_topic(connection, topic_name).settings
    shown = {name: (settings[name].value, settings[name].comes_from) for name in [*USER_PROFILES, "segment.bytes"]}
    assert shown == {
        "cleanup.policy": ("compact", "topic"),
        "min.cleanable.dirty.ratio": ("0.01", "topic"),
        "segment.ms": ("10000", "topic"),
        "delete.retention.ms": ("100", "topic"),
        "segment.bytes": ("1073741824", "default"),
    }


def test_a_new_topic_takes_records_at_once_in_every_partition(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=5)
    partitions = describe_topic(connection, topic_name).partitions
    assert [partition.partition for partition in partitions] == [0, 1, 2, 3, 4]
    for partition in partitions:
        assert partition.leader in partition.replicas
        assert partition.leader in partition.in_sync
        assert (partition.start_offset, partition.end_offset, partition.bytes_on_disk) == (0, 0, 0)


def test_a_description_counts_offsets_and_bytes(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, "a", "b", "a")
    described = describe_topic(connection, topic_name)
    (partition,) = described.partitions
    assert (partition.start_offset, partition.end_offset, partition.stable_offset) == (0, 3, 3)
    assert described.bytes_on_disk is not None
    assert described.bytes_on_disk > 3 * len(b"avalue")
    assert described.no_sizes_because is None


def test_an_open_transaction_shows_as_a_stable_offset_before_the_end(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, "a")
    producer = connection.producer(transactional_id=f"{topic_name}-open")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, b"value", b"b")
    assert producer.flush(30) == 0
    (partition,) = describe_topic(connection, topic_name).partitions
    producer.abort_transaction(30)
    assert (partition.stable_offset, partition.end_offset) == (1, 2)


def test_sizes_are_told_for_every_broker_with_a_replica(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=2)
    sizes = sizes_on_disk(connection, topic_name)
    described = describe_topic(connection, topic_name)
    assert {partition: set(brokers) for partition, brokers in sizes.items()} == {
        partition.partition: set(partition.replicas) for partition in described.partitions
    }


def test_a_description_without_sizes_says_why(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    # A plain cluster ignores this setting, and kafka-python has none like it.
    odd = replace(connection, properties={**connection.properties, "ssl.cipher.suites": "ECDHE"})
    described = describe_topic(odd, topic_name)
    assert described.bytes_on_disk is None
    assert described.no_sizes_because == "the client that asks for sizes does not know the setting ssl.cipher.suites"


def test_a_topic_that_exists_is_not_made_again(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    with pytest.raises(LastwordError, match=f"exists already .* lastword topic alter {topic_name}") as refused:
        create_topic(connection, topic_name, partitions=2)
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("name", ["", ".", "..", "two words", "straße", "a/b", "x" * 250])
def test_a_name_that_kafka_would_refuse_is_refused_by_us(connection: Connection, name: str) -> None:
    with pytest.raises(BadInput):
        create_topic(connection, name)


def test_the_longest_legal_name_is_legal(connection: Connection, topic_name: str) -> None:
    longest = topic_name.ljust(249, "x")
    create_topic(connection, longest, partitions=1)
    delete_topic(connection, longest)


def test_a_name_with_a_dot_and_an_underscore_is_taken_with_a_warning(connection: Connection, topic_name: str) -> None:
    created = create_topic(connection, f"{topic_name}.a_b", partitions=1)
    delete_topic(connection, created.name)
    assert "Kafka's metrics show the two alike" in created.warnings[0]


def test_a_bad_setting_makes_no_topic(connection: Connection, topic_name: str) -> None:
    with pytest.raises(BadInput, match=r"min\.cleanable\.dirty\.ratio=2: it takes a number from 0 to 1"):
        create_topic(connection, topic_name, settings={"min.cleanable.dirty.ratio": "2"})
    with pytest.raises(NotFound):
        describe_topic(connection, topic_name)


@pytest.mark.parametrize("replication", [0, 99])
def test_a_replication_without_brokers_for_it_is_refused(
    connection: Connection, topic_name: str, replication: int
) -> None:
    with pytest.raises(BadInput, match=f"replication of {replication}: the cluster has brokers for 1 to"):
        create_topic(connection, topic_name, replication=replication)


def test_a_topic_without_partitions_is_refused(connection: Connection, topic_name: str) -> None:
    with pytest.raises(BadInput, match="a topic can have 1 to 100000"):
        create_topic(connection, topic_name, partitions=0)


def test_altering_changes_what_is_named_and_leaves_the_rest(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, settings=USER_PROFILES)
    alter_topic(
        connection, topic_name, settings={"segment.ms": "1h", "flush.messages": "1000"}, reset=["delete.retention.ms"]
    )
    names = ("segment.ms", "flush.messages", "delete.retention.ms", "min.cleanable.dirty.ratio")
    assert values(connection, topic_name, *names) == ["3600000", "1000", "86400000", "0.01"]
    assert describe_topic(connection, topic_name).settings["delete.retention.ms"].comes_from == "default"


def test_a_lag_is_checked_against_the_one_the_topic_has(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, settings={"max.compaction.lag.ms": "1h"})
    with pytest.raises(BadInput, match=r"max\.compaction\.lag\.ms=3600000"):
        alter_topic(connection, topic_name, settings={"min.compaction.lag.ms": "2h"})
    alter_topic(connection, topic_name, settings={"min.compaction.lag.ms": "2h"}, reset=["max.compaction.lag.ms"])
    assert values(connection, topic_name, "min.compaction.lag.ms") == ["7200000"]


def test_an_alteration_of_nothing_or_of_both_ways_is_refused(connection: Connection, topic_name: str) -> None:
    with pytest.raises(BadInput, match="nothing to alter"):
        alter_topic(connection, topic_name)
    with pytest.raises(BadInput, match=r"segment\.ms is both set and reset"):
        alter_topic(connection, topic_name, settings={"segment.ms": "1h"}, reset=["segment.ms"])
    with pytest.raises(BadInput, match=r"did you mean 'segment\.ms'\?"):
        alter_topic(connection, topic_name, reset=["segments.ms"])


def test_more_partitions_for_a_compacted_topic_need_a_yes(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name)
    with pytest.raises(BadInput, match=r"from 3 to 6 partitions moves keys.*--yes-move-keys"):
        alter_topic(connection, topic_name, settings={"segment.ms": "1h"}, partitions=6)
    # Refused as a whole: the setting beside it is not changed either.
    assert values(connection, topic_name, "segment.ms") == ["604800000"]
    altered = alter_topic(connection, topic_name, partitions=6, move_keys=True)
    assert altered.partitions == len(describe_topic(connection, topic_name).partitions) == 6


def test_more_partitions_for_a_topic_that_becomes_compacted_need_a_yes_too(
    connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, settings={"cleanup.policy": "delete"})
    with pytest.raises(BadInput, match="moves keys"):
        alter_topic(connection, topic_name, settings={"cleanup.policy": "compact"}, partitions=6)


def test_more_partitions_for_a_topic_of_events_need_none(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"cleanup.policy": "delete"})
    assert alter_topic(connection, topic_name, partitions=2).partitions == 2
    write(connection, topic_name, "a", "b", "c")


def test_fewer_partitions_are_refused_and_as_many_are_no_change(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name)
    with pytest.raises(BadInput, match="Kafka can't take any away"):
        alter_topic(connection, topic_name, partitions=2, move_keys=True)
    assert alter_topic(connection, topic_name, partitions=3).partitions == 3


def test_a_deleted_topic_is_gone_and_its_name_is_free_for_another(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name)
    write(connection, topic_name, "a")
    first = describe_topic(connection, topic_name)
    delete_topic(connection, topic_name)
    assert topic_name not in [topic.name for topic in list_topics(connection)]
    create_topic(connection, topic_name)
    second = describe_topic(connection, topic_name)
    assert second.topic_id != first.topic_id
    assert [partition.end_offset for partition in second.partitions] == [0, 0, 0]


def test_what_is_not_there_is_not_found(connection: Connection, topic_name: str) -> None:
    for act in (describe_topic, delete_topic):
        with pytest.raises(NotFound, match=topic_name):
            act(connection, topic_name)
    with pytest.raises(NotFound, match=topic_name):
        alter_topic(connection, topic_name, settings={"segment.ms": "1h"})


def test_a_listing_has_the_topic_and_hides_internal_ones(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=2, settings={"cleanup.policy": "delete,compact"})
    # The first transaction of a cluster makes Kafka's own topic of transactions.
    connection.producer(transactional_id=f"{topic_name}-first").init_transactions(30)
    (listed,) = [topic for topic in list_topics(connection) if topic.name == topic_name]
    assert (listed.partitions, listed.cleanup_policy) == (2, "compact,delete")
    assert listed.topic_id == describe_topic(connection, topic_name).topic_id
    assert not [topic for topic in list_topics(connection) if topic.name.startswith("__")]
    assert "__transaction_state" in [topic.name for topic in list_topics(connection, internal=True)]


def test_internal_topics_are_left_alone(connection: Connection) -> None:
    with pytest.raises(BadInput, match="internal"):
        create_topic(connection, "__mine")
    with pytest.raises(BadInput, match="internal"):
        alter_topic(connection, "__consumer_offsets", settings={"segment.ms": "1h"})
    with pytest.raises(BadInput, match="internal"):
        delete_topic(connection, "__consumer_offsets")


def test_a_cluster_that_does_not_answer_is_unreachable() -> None:
    nowhere = Connection(bootstrap_servers="127.0.0.1:1", patience_s=2)
    with pytest.raises(ClusterUnreachable):
        create_topic(nowhere, "profiles")
