"""How every part of lastword speaks to a cluster: one place that makes clients and says what their errors mean."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound
from lastword.core.nearest import did_you_mean
from lastword.kafka.client.admin_types import ClusterMetadata, TopicMetadata

# What a producer is told whose transactional id another has taken.
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)

# What the law rests on. The same key must go to the same partition from every writer, an acknowledged record must
# be kept once and in order, and a reader sees committed data only: so these are not for a settings file to change. And
# no client makes a topic by naming one: the cluster would make it with its own settings, mostly without compaction.
LAW = {
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": "true",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
}
_PRODUCER = {key: LAW[key] for key in ("partitioner", "acks", "enable.idempotence")}
_CONSUMER = {"isolation.level": LAW["isolation.level"]}

# So long a cluster that lets nobody in has to say so.
_REJECTION_S = 1.5

# For what librdkafka logs at any level: that a client can't go on.
_UNHEARD = logging.Logger("librdkafka")
_UNHEARD.addHandler(logging.NullHandler())

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
            given = str(self.properties.get(name, value)).lower()
            if given not in (value, {"all": "-1"}.get(value, value)):
                raise BadInput(f"client setting {name}={given}: lastword always uses {name}={value}; remove the line")

    def admin(self) -> AdminClient:
        return _made(AdminClient, self._settings({}))

    def producer(self, **settings: Any) -> Producer:
        """An idempotent producer; `settings` in Python spelling (`linger_ms=5` is `linger.ms`)."""
        return _made(Producer, self._settings({"linger.ms": 5, **_PRODUCER, **_dotted(settings)}))

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer that is assigned by hand and commits nothing, unless `settings` say otherwise."""
        return _made(
            Consumer,
            self._settings(
                {
                    "group.id": "lastword",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 50,
                    **_CONSUMER,
                    **_dotted(settings),
                }
            ),
        )

    def reach(self, client: Client | None = None) -> ClusterMetadata:
        """The cluster's metadata, or ClusterUnreachable as soon as it is certain that nobody answers."""
        # A client that is there already spares the connection of another one. It has a length, mostly 0: compare with
        # None, or it would never be taken.
        asker = self.admin() if client is None else client
        give_up_at = time.monotonic() + self.patience_s
        while True:
            try:
                return asker.list_topics(timeout=max(0.1, min(0.5, give_up_at - time.monotonic())))
            except KafkaException as failure:
                refusal = _refusal(self.bootstrap_servers)
                if refusal is None and (rejected := self._rejection()) is not None:
                    raise rejected from None
                if refusal or time.monotonic() >= give_up_at:
                    reason = refusal or _reason(failure)
                    # Somebody who takes connections and says nothing may want a login, or TLS.
                    login = "" if refusal else ", or, if it asks for a login, give client settings with --config"
                    raise ClusterUnreachable(
                        f"no Kafka answers at {self.bootstrap_servers} ({reason}): "
                        f"check the address, or start a local one with  lastword broker start{login}"
                    ) from None

    def topic(self, name: str, client: Client | None = None) -> TopicMetadata:
        """The metadata of one topic; NotFound with the nearest known name when it is not there."""
        return self.topic_in(self.reach(client), name)

    def topic_in(self, cluster: ClusterMetadata, name: str) -> TopicMetadata:
        """The same, of metadata that is there already."""
        topics = cluster.topics
        found = topics.get(name)
        if found is None or found.error is not None:
            hint = did_you_mean(name, topics) or f"make it with  lastword topic create {name}"
            # Kafka shows nobody what he has no right to see.
            user = self.properties.get("sasl.username")
            unseen = "" if user is None else f", or {str(user)!r} lacks the right Describe on it"
            raise NotFound(f"no topic {name!r} at {self.bootstrap_servers}{unseen}: {hint}")
        return found

    def _rejection(self) -> ClusterUnreachable | None:
        """Why somebody who answers does not let us in; None when nobody says so.

        Only an error callback is told that, and a call that waits for an answer goes on waiting.
        """
        told: list[KafkaError] = []
        asker = _made(AdminClient, self._settings({"error_cb": told.append}))
        give_up_at = time.monotonic() + _REJECTION_S
        while time.monotonic() < give_up_at:
            asker.poll(0.1)
            for error in told:
                if (advice := _rejected(error)) is not None:
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
            "logger": _UNHEARD,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            **self.properties,
            "allow.auto.create.topics": LAW["allow.auto.create.topics"],
            **ours,
        }


def translated(failure: KafkaException | KafkaError, where: str) -> LastwordError:
    """The error of the client library as one of ours, with `where` it happened and what to do next."""
    error = failure if isinstance(failure, KafkaError) else failure.args[0]
    if (right := _missing_right(error.code(), where)) is not None:
        return LastwordError(
            f"{where}: not allowed: it needs the right {right}; ask the cluster's owner for it, or use other "
            "credentials with --config"
        )
    kind = _KINDS.get(error.code())
    if kind is None:
        return LastwordError(f"{where}: {error.str()}")
    make, advice = kind
    return make(f"{where}: {error.str()}: {advice}")


# What each thing that we do needs, by how it is told; a topic is always described first.
_TOPIC_RIGHTS = {
    "writing to ": "Write on the topic",
    "reading": "Read on the topic",
    "following ": "Read on the topic",
    "nudging ": "Write on the topic",
    "a transaction of ": "Write on every topic that it writes to",
    "settings of ": "DescribeConfigs on the topic",
    "creating topic ": "Create on the topic",
    "deleting topic ": "Delete on the topic",
    "raising topic ": "Alter on the topic",
    "committing ": "Read on the topic",
}
_OTHER_RIGHTS = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Read on the consumer group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Write on the transactional id",
    # Topics are made with the right on each of them; what is about the cluster is the administrator's.
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Describe or Alter on the cluster, as its administrator has",
}


def _missing_right(code: int, where: str) -> str | None:
    """The right that somebody lacks who is refused with this code; None for another refusal."""
    # Who may write nowhere is refused by the cluster, before any topic is named.
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED or (
        code == KafkaError.CLUSTER_AUTHORIZATION_FAILED and where.startswith(("writing to ", "nudging "))
    ):
        return next((right for act, right in _TOPIC_RIGHTS.items() if where.startswith(act)), "Describe on the topic")
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED and where.startswith("listing "):
        return "Describe on the consumer groups"
    return _OTHER_RIGHTS.get(code)


def _rejected(error: KafkaError) -> str | None:
    if error.code() == KafkaError._AUTHENTICATION:
        return "the user or the password is wrong: check sasl.username, sasl.password and sasl.mechanism in --config"
    if error.code() == KafkaError._SSL:
        return f"{_ssl_reason(error)}: check the ssl.* settings in --config"
    return None


def _ssl_reason(error: KafkaError) -> str:
    """librdkafka's reason without its addresses and advice."""
    found = re.search(r"SSL handshake failed: [^(]*?([A-Za-z][^:()]*)(?::? *\(|$)", error.str())
    return f"TLS: {found[1].strip()}" if found else "TLS failed"


_AWAY = "is the cluster up?  lastword broker status"
_NO_LEADER = "a part of the topic has no leader right now; is every broker up?  lastword broker status"
_KINDS: dict[int, tuple[Callable[[str], LastwordError], str]] = {
    KafkaError._TRANSPORT: (ClusterUnreachable, _AWAY),
    KafkaError._ALL_BROKERS_DOWN: (ClusterUnreachable, _AWAY),
    KafkaError._TIMED_OUT: (ClusterUnreachable, _AWAY),
    KafkaError._MSG_TIMED_OUT: (ClusterUnreachable, _AWAY),
    KafkaError._RESOLVE: (ClusterUnreachable, _AWAY),
    KafkaError.REQUEST_TIMED_OUT: (ClusterUnreachable, _AWAY),
    KafkaError.NETWORK_EXCEPTION: (ClusterUnreachable, _AWAY),
    KafkaError.LEADER_NOT_AVAILABLE: (ClusterUnreachable, _NO_LEADER),
    KafkaError.NOT_LEADER_FOR_PARTITION: (ClusterUnreachable, _NO_LEADER),
    KafkaError.FENCED_LEADER_EPOCH: (ClusterUnreachable, _NO_LEADER),
    KafkaError.UNKNOWN_LEADER_EPOCH: (ClusterUnreachable, _NO_LEADER),
    KafkaError.OFFSET_NOT_AVAILABLE: (ClusterUnreachable, _NO_LEADER),
    KafkaError._AUTHENTICATION: (ClusterUnreachable, "check the user and password in --config"),
    KafkaError._SSL: (ClusterUnreachable, "check the ssl.* settings in --config"),
    KafkaError.UNKNOWN_TOPIC_OR_PART: (NotFound, "see  lastword topic list"),
    KafkaError._UNKNOWN_TOPIC: (NotFound, "see  lastword topic list"),
    KafkaError._UNKNOWN_PARTITION: (NotFound, "see  lastword topic describe"),
    KafkaError.INVALID_CONFIG: (BadInput, "see  lastword topic explain"),
    KafkaError.MSG_SIZE_TOO_LARGE: (BadInput, "raise max.message.bytes of the topic, or make the value smaller"),
}


_Client = TypeVar("_Client", AdminClient, Producer, Consumer)


def _made(client: type[_Client], settings: dict[str, Any]) -> _Client:
    try:
        return client(settings)
    except KafkaException as refusal:
        raise BadInput(f"client settings: {_reason(refusal)}: check them (--config)") from None
    except (TypeError, ValueError, AttributeError, SystemError) as refusal:
        # The Python client's own settings take functions, which a file can't hold.
        raise BadInput(f"client settings: {refusal}: check them (--config)") from None


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    # A callable is the Python client's own setting, with an underscore; everything else is librdkafka's.
    return {name if callable(value) else name.replace("_", "."): value for name, value in settings.items()}


def _reason(failure: KafkaException) -> str:
    return str(failure.args[0].str())


def _refusal(bootstrap_servers: str) -> str | None:
    """Why no address can ever answer (refused, unknown host), or None while one might."""
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
    """The leader of a partition, as the cluster describes it; None while there is none."""
    return info.leader.id if info.leader is not None and info.leader.id >= 0 else None
