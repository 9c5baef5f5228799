"""The address of a cluster and the settings of its clients: one place makes every client, and asks who answers."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lastword.core.errors import BadInput, ClusterUnreachable, NotFound
from lastword.core.nearest import did_you_mean
from lastword.kafka.client.admin_types import ClusterMetadata, TopicMetadata

# What the law rests on: every writer sends a key to the same partition, an acknowledged record is kept once and in
# order, and a reader sees committed data only. So no settings file may change these. And no client creates a topic by
# naming it: the cluster would create the topic with its own settings, mostly without compaction.
LAW = {
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": "true",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
}
_PRODUCER = {key: LAW[key] for key in ("partitioner", "acks", "enable.idempotence")}
_CONSUMER = {"isolation.level": LAW["isolation.level"]}

# How long to wait for a cluster to say that it rejects a login.
_REJECTION_S = 1.5

# Drops a line that librdkafka logs at every log level: that a client can't continue.
_NO_LOG = logging.Logger("librdkafka")
_NO_LOG.addHandler(logging.NullHandler())

Properties = Mapping[str, str | int | float | bool]
Client = AdminClient | Consumer | Producer


@dataclass(frozen=True, kw_only=True)
class Connection:
    """An address and the client settings for it, in librdkafka's property names."""

    bootstrap_servers: str
    # Kept out of the repr: it may hold a password.
    properties: Properties = field(default_factory=dict, repr=False)
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        if not self.bootstrap_servers.strip(", "):
            raise BadInput("the address of the cluster is empty: give it like HOST:PORT")
        for name, value in LAW.items():
            setting = str(self.properties.get(name, value)).lower()
            if setting not in (value, {"all": "-1"}.get(value, value)):
                raise BadInput(f"client setting {name}={setting}: lastword always uses {name}={value}; remove it")

    def admin(self) -> AdminClient:
        return _client(AdminClient, self._settings({}))

    def producer(self, **settings: Any) -> Producer:
        """An idempotent producer; `settings` in Python spelling (`linger_ms=5` is `linger.ms`)."""
        return _client(Producer, self.producer_settings(**settings))

    def producer_settings(self, **settings: Any) -> dict[str, Any]:
        """All settings that `producer` gives its client."""
        return self._settings({"linger.ms": 5, **_PRODUCER, **_dotted(settings)})

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer that is assigned by hand and commits nothing, unless `settings` say otherwise."""
        return _client(Consumer, self.consumer_settings(**settings))

    def consumer_settings(self, **settings: Any) -> dict[str, Any]:
        """All settings that `consumer` gives its client."""
        return self._settings(
            {
                "group.id": "lastword",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                **_CONSUMER,
                **_dotted(settings),
            }
        )

    def reach(self, client: Client | None = None) -> ClusterMetadata:
        """The cluster's metadata; ClusterUnreachable as soon as it is certain that nobody answers."""
        # A given client spares another connection. A client has a length, mostly 0: compare with None, or the given
        # client would never be used.
        asker = self.admin() if client is None else client
        give_up_at = time.monotonic() + self.patience_s
        while True:
            try:
                return asker.list_topics(timeout=max(0.1, min(0.5, give_up_at - time.monotonic())))
            except KafkaException as failure:
                refusal = _refusal(self.bootstrap_servers)
                if refusal is None and (rejection := self._rejection()) is not None:
                    raise rejection from None
                if refusal or time.monotonic() >= give_up_at:
                    reason = refusal or _reason(failure)
                    # A server that takes connections and does not answer may want a login, or TLS.
                    login = "" if refusal else ", or, if it asks for a login, give client settings with --config"
                    raise ClusterUnreachable(
                        f"no Kafka answers at {self.bootstrap_servers} ({reason}): "
                        f"check the address, or start a local one with  lastword broker start{login}"
                    ) from None

    def topic(self, name: str, client: Client | None = None) -> TopicMetadata:
        """The metadata of one topic; NotFound, with the nearest known name, when there is no such topic."""
        return self.topic_in(self.reach(client), name)

    def topic_in(self, cluster: ClusterMetadata, name: str) -> TopicMetadata:
        """The same, from metadata that the caller already has."""
        topics = cluster.topics
        topic = topics.get(name)
        if topic is None or topic.error is not None:
            hint = did_you_mean(name, topics) or f"make it with  lastword topic create {name}"
            # Kafka hides topics from users who lack the right to see them.
            user = self.properties.get("sasl.username")
            hidden = "" if user is None else f", or {str(user)!r} lacks the right Describe on it"
            raise NotFound(f"no topic {name!r} at {self.bootstrap_servers}{hidden}: {hint}")
        return topic

    def _rejection(self) -> ClusterUnreachable | None:
        """Why a cluster that answers rejects our login; None when it does not reject it.

        Only an error callback gets the rejection: a call that waits for an answer keeps waiting.
        """
        errors: list[KafkaError] = []
        asker = _client(AdminClient, self._settings({"error_cb": errors.append}))
        give_up_at = time.monotonic() + _REJECTION_S
        while time.monotonic() < give_up_at:
            asker.poll(0.1)
            for error in errors:
                if (advice := _advice_on_rejection(error)) is not None:
                    user = self.properties.get("sasl.username")
                    who = "" if user is None else f" {str(user)!r}"
                    return ClusterUnreachable(f"{self.bootstrap_servers} does not let{who or ' us'} in: {advice}")
        return None

    def _settings(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": "lastword",
            # Errors reach the user as exceptions with a next step; librdkafka's own log would repeat them on stderr.
            "log_level": 0,
            "logger": _NO_LOG,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            **self.properties,
            "allow.auto.create.topics": LAW["allow.auto.create.topics"],
            **ours,
        }


def _advice_on_rejection(error: KafkaError) -> str | None:
    """The advice for a rejected login; None for other errors."""
    if error.code() == KafkaError._AUTHENTICATION:
        return "the user or the password is wrong: check sasl.username, sasl.password and sasl.mechanism in --config"
    if error.code() == KafkaError._SSL:
        return f"{_ssl_reason(error)}: check the ssl.* settings in --config"
    return None


def _ssl_reason(error: KafkaError) -> str:
    """librdkafka's reason without its addresses and advice."""
    reason = re.search(r"SSL handshake failed: [^(]*?([A-Za-z][^:()]*)(?::? *\(|$)", error.str())
    return f"TLS: {reason[1].strip()}" if reason else "TLS failed"


_Client = TypeVar("_Client", AdminClient, Producer, Consumer)


def _client(kind: type[_Client], settings: dict[str, Any]) -> _Client:
    try:
        return kind(settings)
    except KafkaException as refusal:
        raise BadInput(f"client settings: {_reason(refusal)}: check them (--config)") from None
    except (TypeError, ValueError, AttributeError, SystemError) as refusal:
        # The Python client's own settings take functions, which a file can't hold.
        raise BadInput(f"client settings: {refusal}: check them (--config)") from None


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    # A setting whose value is a function belongs to the Python client and has underscores; all others are librdkafka's.
    return {name if callable(value) else name.replace("_", "."): value for name, value in settings.items()}


def _reason(failure: KafkaException) -> str:
    return str(failure.args[0].str())


def _refusal(bootstrap_servers: str) -> str | None:
    """Why no address can answer (refused, unknown host); None if an address may still answer."""
    reasons = []
    for address in bootstrap_servers.split(","):
        host, _, port = address.strip().rpartition(":") if ":" in address else (address.strip(), "", "9092")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except (ConnectionRefusedError, socket.gaierror) as refused:
            reasons.append((refused.strerror or "refused").lower())
        except (OSError, ValueError):
            return None
        else:
            return None
    return reasons[0] if reasons else None


def leader_of(info: Any) -> int | None:
    """The leader of a partition that the cluster has described; None while it has no leader."""
    return info.leader.id if info.leader is not None and info.leader.id >= 0 else None
