"""The table of settings says what a real 4.3 broker does."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from lastword.kafka.client.admin_types import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
from lastword.kafka.topics.setting_kinds import LONGEST, Choice, Real, Setting
from lastword.kafka.topics.settings_table import KNOWN_TO_KAFKA, TOPIC_SETTINGS
from lastword.kafka.topics.topic_changes import create_topic


def defaults(connection: Connection, kind: ResourceType, name: str) -> dict[str, str | None]:
    """Kafka's own default of every setting, whatever the broker or the topic has set over it."""
    resource = ConfigResource(kind, name)
    # Held by a name: an admin client that is collected takes its open questions with it.
    admin = connection.admin()
    entries = admin.describe_configs([resource])[resource].result()
    found: dict[str, str | None] = {}
    for entry in entries.values():
        chain = [*entry.synonyms.values(), entry]
        found[entry.name] = next(
            (each.value for each in chain if ConfigSource(each.source).name == "DEFAULT_CONFIG"), None
        )
    return found


def takes(connection: Connection, resource_type: ResourceType, resource: str, name: str, value: str) -> bool:
    """Whether the broker would take the value; nothing is changed."""
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(resource_type, resource, incremental_configs=[change])
    admin = connection.admin()
    try:
        admin.incremental_alter_configs([asked], validate_only=True)[asked].result()
    except KafkaException as failure:
        if failure.args[0].code() != KafkaError.INVALID_CONFIG:
            raise
        return False
    return True


def ends(setting: Setting) -> list[str]:
    kind = setting.kind
    if isinstance(kind, Choice):
        return list(kind.words)
    return [str(kind.least), str(kind.most)]


def past_the_ends(setting: Setting) -> list[str]:
    kind = setting.kind
    if isinstance(kind, Choice):
        return ["sometimes"]
    if isinstance(kind, Real):
        return [str(kind.least - 0.001), str(kind.most + 0.001)]
    return [str(kind.least - 1), str(kind.most + 1)]


def broker_of(connection: Connection) -> str:
    return str(min(connection.reach().brokers))


def test_the_names_we_know_are_the_names_the_broker_knows(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    assert defaults(connection, ResourceType.TOPIC, topic_name).keys() == KNOWN_TO_KAFKA


def test_the_defaults_of_topic_settings_are_the_broker_s(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    found = defaults(connection, ResourceType.TOPIC, topic_name)
    assert {name: found[name] for name in TOPIC_SETTINGS} == {
        name: setting.default for name, setting in TOPIC_SETTINGS.items()
    }


def test_the_defaults_of_cleaner_settings_are_the_broker_s(connection: Connection) -> None:
    found = defaults(connection, ResourceType.BROKER, broker_of(connection))
    assert {name: found[name] for name in CLEANER_SETTINGS} == {
        name: setting.default for name, setting in CLEANER_SETTINGS.items()
    }


def test_the_broker_takes_both_ends_of_every_range_of_a_topic_setting(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    refused = [
        f"{name}={value}"
        for name, setting in TOPIC_SETTINGS.items()
        for value in ends(setting)
        if not takes(connection, ResourceType.TOPIC, topic_name, name, value)
    ]
    assert refused == []


def test_the_broker_refuses_what_lies_past_the_ends_but_for_one_oddity(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    taken = [
        f"{name}={value}"
        for name, setting in TOPIC_SETTINGS.items()
        for value in past_the_ends(setting)
        if takes(connection, ResourceType.TOPIC, topic_name, name, value)
    ]
    # Kafka takes any negative number as "no limit"; we take -1 alone, so that a slip of the hand is seen.
    assert taken == ["retention.bytes=-2"]


def test_the_broker_takes_the_lower_end_of_every_range_of_a_cleaner_setting(connection: Connection) -> None:
    # log.cleaner.enable can't be changed while the broker runs, so its words can't be tried.
    refused = [
        f"{name}={value}"
        for name, setting in CLEANER_SETTINGS.items()
        if name != "log.cleaner.enable"
        for value in ends(setting)[:1]
        if not takes(connection, ResourceType.BROKER, broker_of(connection), name, value)
    ]
    assert refused == []


def test_an_unlimited_lag_is_the_largest_number_the_broker_takes(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    assert not takes(connection, ResourceType.TOPIC, topic_name, "max.compaction.lag.ms", str(LONGEST + 1))
