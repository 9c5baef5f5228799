"""The settings of one topic as the cluster has them: what is in force, and what is set on the topic itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from lastword.core.errors import LastwordError
from lastword.kafka.connection import translated

_PATIENCE_S = 30
_SPREAD_PATIENCE_S = 5

# After one of these the settings are certainly as they were. After any other failure nobody knows.
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "it needs the right AlterConfigs on the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "it needs the right AlterConfigs on the topic",
    KafkaError.POLICY_VIOLATION: "the cluster's policy for topic settings forbids it; ask the cluster's owner",
    KafkaError.INVALID_CONFIG: "the cluster does not take this value",
}


class AlterRefused(LastwordError):
    """The cluster refused a change of settings, and nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class TopicSetting:
    """The value in force, and whether it is set on the topic or comes from the broker."""

    value: str
    set_on_topic: bool

    @property
    def on_topic(self) -> str | None:
        """The value set on the topic; None when the topic does not set it."""
        return self.value if self.set_on_topic else None


def topic_settings(admin: AdminClient, topic: str) -> dict[str, TopicSetting]:
    """Every setting in force for the topic; NotFound when there is no such topic."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        entries = admin.describe_configs([resource], request_timeout=_PATIENCE_S)[resource].result()
    except KafkaException as failure:
        raise _explained(failure, f"settings of {topic}", right="DescribeConfigs") from None
    on_topic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        name: TopicSetting(value=entry.value or "", set_on_topic=entry.source == on_topic)
        for name, entry in entries.items()
    }


def topic_identity(admin: AdminClient, topic: str) -> str:
    """The id that tells a topic from a later one of the same name; NotFound when there is no such topic."""
    try:
        found = admin.describe_topics(TopicCollection([topic]), request_timeout=_PATIENCE_S)[topic].result()
    except KafkaException as failure:
        raise _explained(failure, f"topic {topic}", right="Describe") from None
    return str(found.topic_id)


def alter_topic_settings(admin: AdminClient, topic: str, changes: Mapping[str, str | None]) -> None:
    """Sets the given values on the topic, all or none; None removes one from the topic, set or not."""
    entries = [_operation(name, value) for name, value in changes.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    try:
        admin.incremental_alter_configs([resource], request_timeout=_PATIENCE_S)[resource].result()
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() in _REFUSALS:
            wanted = ", ".join(
                f"{name}={value}" if value is not None else f"no {name}" for name, value in changes.items()
            )
            raise AlterRefused(f"{topic}: can't set {wanted} ({error.str()}): {_REFUSALS[error.code()]}") from None
        raise translated(failure, f"settings of {topic}") from None
    _await_spread(admin, topic, changes)


def _explained(failure: KafkaException, where: str, *, right: str) -> LastwordError:
    error = failure.args[0]
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return LastwordError(
            f"{where}: {error.str()}: it needs the right {right} on the topic, from the cluster's owner"
        )
    return translated(failure, where)


def _operation(name: str, value: str | None) -> ConfigEntry:
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=kind)


def _await_spread(admin: AdminClient, topic: str, changes: Mapping[str, str | None]) -> None:
    # The controller acknowledges before the brokers have heard of it. The change is certain by then, so this wait
    # ends without a word: it only lets whoever looks next see what was asked for.
    give_up_at = time.monotonic() + _SPREAD_PATIENCE_S
    while time.monotonic() < give_up_at:
        present = topic_settings(admin, topic)
        if all(present[name].on_topic == value for name, value in changes.items() if name in present):
            return
        time.sleep(0.02)
