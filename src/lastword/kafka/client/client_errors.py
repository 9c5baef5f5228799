"""The errors of confluent-kafka as errors of lastword: what happened, where, and what to do next."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound

# The errors that a producer gets when another producer has taken its transactional id.
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


def translated(failure: KafkaException | KafkaError, where: str) -> LastwordError:
    """The LastwordError for an error of the client library; `where` names the action and topic, as in _TOPIC_RIGHTS."""
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


# The right that each action needs, by the first words of `where`. Describe on the topic is needed before all others.
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
    # Creating a topic needs a right on that topic alone; actions on the cluster are for its administrator.
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Describe or Alter on the cluster, as its administrator has",
}


def _missing_right(code: int, where: str) -> str | None:
    """The right whose lack has this error code; None for an error of another kind."""
    # A user who may write to no topic is refused by the cluster, before any topic is named.
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED or (
        code == KafkaError.CLUSTER_AUTHORIZATION_FAILED and where.startswith(("writing to ", "nudging "))
    ):
        return next((right for act, right in _TOPIC_RIGHTS.items() if where.startswith(act)), "Describe on the topic")
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED and where.startswith("listing "):
        return "Describe on the consumer groups"
    return _OTHER_RIGHTS.get(code)


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
