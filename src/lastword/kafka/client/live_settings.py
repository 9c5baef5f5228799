"""The settings of topics and brokers in force now: their values, who set them, and changing them.

They are in this room and not in `kafka.topics`, because a writer must explain why Kafka refused its record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from lastword.core.errors import AlterRefused
from lastword.kafka.client.admin_types import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from lastword.kafka.client.client_errors import translated

Origin = Literal["topic", "broker", "default"]

_PATIENCE_S = 30
_SPREAD_PATIENCE_S = 5

# After one of these errors the settings are unchanged. After any other error they may have changed.
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "it needs the right AlterConfigs on the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "it needs the right AlterConfigs on the topic",
    KafkaError.POLICY_VIOLATION: "the cluster's policy for topic settings forbids it; ask the cluster's owner",
    KafkaError.INVALID_CONFIG: "the cluster does not take this value",
}

# After one of these a broker's settings are unknown: the broker did not answer, or we lack the right DescribeConfigs.
_HIDDEN = {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
}


@dataclass(frozen=True, kw_only=True)
class SettingNow:
    """The value in force, and who set it: the topic itself, the broker, or nobody (Kafka's default)."""

    value: str
    comes_from: Origin

    @property
    def on_topic(self) -> str | None:
        """The value set on the topic; None when the topic does not set it."""
        return self.value if self.comes_from == "topic" else None


def settings_now(admin: AdminClient, topic: str) -> dict[str, SettingNow]:
    """Every setting in force for the topic, by name; NotFound when there is no such topic."""
    return settings_of(answer(described_settings(admin, [topic])[topic], f"settings of topic {topic!r}"))


def settings_of(entries: Mapping[str, Any]) -> dict[str, SettingNow]:
    """A topic's settings in the cluster's answer, by name."""
    return {
        name: SettingNow(value=entry.value or "", comes_from=_origin(entry.source))
        for name, entry in sorted(entries.items())
    }


def described_settings(
    admin: AdminClient, topics: list[str], *, patience_s: float = _PATIENCE_S
) -> dict[str, Future[Any]]:
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    answers = admin.describe_configs(resources, request_timeout=patience_s)
    return {resource.name: future for resource, future in answers.items()}


def broker_settings(admin: AdminClient, brokers: Iterable[int]) -> dict[int, dict[str, str]]:
    """The settings in force on each broker; nothing of a broker that does not answer, or not to us."""
    # librdkafka takes one broker in a call. All calls are made before the first answer is waited for.
    futures: dict[int, Future[Any]] = {}
    for broker in brokers:
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        futures[broker] = admin.describe_configs([resource], request_timeout=_PATIENCE_S)[resource]
    settings = {}
    for broker, future in futures.items():
        try:
            settings[broker] = {name: entry.value or "" for name, entry in future.result().items()}
        except KafkaException as failure:
            if failure.args[0].code() not in _HIDDEN:
                raise translated(failure, f"settings of broker {broker}") from None
    return settings


class TopicNow(NamedTuple):
    identity: str  # a later topic of the same name has another one
    partitions: int


def topics_now(admin: AdminClient, names: list[str]) -> dict[str, TopicNow]:
    """Identity and partitions of these topics, by one request; NotFound when one of them does not exist."""
    futures = admin.describe_topics(TopicCollection(names), request_timeout=_PATIENCE_S)
    topics = {name: answer(futures[name], f"topic {name!r}") for name in names}
    return {name: TopicNow(str(topic.topic_id), len(topic.partitions)) for name, topic in topics.items()}


def topic_identity(admin: AdminClient, topic: str) -> str:
    return topics_now(admin, [topic])[topic].identity


def alter_settings(admin: AdminClient, topic: str, changes: Mapping[str, str | None]) -> None:
    """Sets the given values on the topic, all or none; None removes a setting from the topic."""
    entries = [_operation(name, value) for name, value in changes.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    try:
        admin.incremental_alter_configs([resource], request_timeout=_PATIENCE_S)[resource].result()
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() in _REFUSALS:
            changed = ", ".join(
                f"set {name}={value}" if value is not None else f"reset {name}" for name, value in changes.items()
            )
            raise AlterRefused(f"{topic}: can't {changed} ({error.str()}): {_REFUSALS[error.code()]}") from None
        raise translated(failure, f"settings of {topic}") from None
    _await_spread(admin, topic, changes)


def answer(future: Future[Any], where: str) -> Any:
    """The answer of the cluster; a LastwordError that names `where` if the cluster refused."""
    try:
        return future.result()
    except KafkaException as failure:
        raise translated(failure, where) from None


def _origin(source: ConfigSource) -> Origin:
    # The client hands over the bare number where its types promise the enum.
    source = ConfigSource(source)
    if source is ConfigSource.DYNAMIC_TOPIC_CONFIG:
        return "topic"
    return "default" if source is ConfigSource.DEFAULT_CONFIG else "broker"


def _operation(name: str, value: str | None) -> ConfigEntry:
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=kind)


def _await_spread(admin: AdminClient, topic: str, changes: Mapping[str, str | None]) -> None:
    # The controller acknowledges before the brokers know the change. The change is certain by then, so no error ends
    # this wait: it only lets the next command see the new values.
    give_up_at = time.monotonic() + _SPREAD_PATIENCE_S
    while time.monotonic() < give_up_at:
        present = settings_now(admin, topic)
        if all(_same(present[name].on_topic, value) for name, value in changes.items() if name in present):
            return
        time.sleep(0.02)


def _same(shown: str | None, wanted: str | None) -> bool:
    """Whether the broker shows the given value: it may spell a number in another way."""
    try:
        return shown == wanted or float(shown or "") == float(wanted or "")
    except ValueError:
        return False
