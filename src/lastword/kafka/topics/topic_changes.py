"""Creating, altering and deleting topics. Each returns when the next command sees the change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lastword.core.errors import AlreadyExists, BadInput, LastwordError
from lastword.kafka.client.admin_types import NewPartitions, NewTopic
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import SettingNow, alter_settings, answer, settings_now
from lastword.kafka.topics.cleanup_policy import CLEANUP_POLICY, CleanupPolicy, cleanup_policy
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
from lastword.kafka.topics.topic_description import LATEST, offsets
from lastword.kafka.topics.topic_names import name_warnings, refuse_illegal, refuse_internal
from lastword.kafka.topics.topic_settings import refuse_unknown, validated

DEFAULT_PARTITIONS = 3
DEFAULT_REPLICATION = 3
# Far more than a topic should have; the client library fails beyond.
MOST_PARTITIONS = 100_000


@dataclass(frozen=True, kw_only=True)
class CreatedTopic:
    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AlteredTopic:
    """What was changed; `partitions` is the number the topic has now."""

    name: str
    settings: Mapping[str, str]
    reset: tuple[str, ...]
    partitions: int
    warnings: tuple[str, ...]


def create_topic(
    connection: Connection,
    name: str,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> CreatedTopic:
    """A new topic, compacted unless `settings` name a cleanup.policy; it has a leader for every partition on return."""
    refuse_illegal(name)
    refuse_internal(name, "create")
    checked = validated({CLEANUP_POLICY: "compact", **(settings or {})})
    partitions = DEFAULT_PARTITIONS if partitions is None else partitions
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise BadInput(f"topic {name!r} with {partitions} partitions: a topic can have 1 to {MOST_PARTITIONS}")
    admin = connection.admin()
    brokers = len(connection.reach(admin).brokers)
    replication = min(DEFAULT_REPLICATION, brokers) if replication is None else replication
    if not 1 <= replication <= brokers:
        raise BadInput(
            f"topic {name!r} with a replication of {replication}: the cluster has brokers for 1 to {brokers}"
        )
    new_topic = NewTopic(name, partitions, replication, config=dict(checked.settings))
    try:
        admin.create_topics([new_topic], request_timeout=connection.patience_s)[name].result()
    except KafkaException as failure:
        raise _not_created(failure, connection, name) from None
    _wait_until(lambda: _led(connection, admin, name, partitions), connection, f"topic {name!r}")
    return CreatedTopic(
        name=name,
        partitions=partitions,
        replication=replication,
        settings=checked.settings,
        warnings=(*name_warnings(name), *checked.warnings),
    )


def create_if_missing(connection: Connection, name: str, *, partitions: int, settings: Mapping[str, str]) -> None:
    """Creates a topic that is missing; does not change a topic that exists."""
    if name not in connection.reach().topics:
        with suppress(AlreadyExists):  # another process has created it meanwhile
            create_topic(connection, name, partitions=partitions, settings=settings)


def alter_topic(
    connection: Connection,
    name: str,
    *,
    settings: Mapping[str, str] | None = None,
    reset: Iterable[str] = (),
    partitions: int | None = None,
    move_keys: bool = False,
) -> AlteredTopic:
    """Changes some settings, gives those in `reset` back to the default, adds partitions; leaves the rest as it is.

    Everything is checked before anything is changed. More partitions for a compacted topic need `move_keys`.
    """
    reset = tuple(reset)
    settings = settings or {}
    _refuse_no_change(name, settings, reset, partitions)
    refuse_internal(name, "alter")
    admin = connection.admin()
    partitions_now = len(connection.topic(name, admin).partitions)
    present = settings_now(admin, name)
    checked = validated(settings, present=_after_reset(present, reset))
    if partitions is not None:
        _refuse_partitions(name, partitions_now, partitions)
        policies = (cleanup_policy(present), CleanupPolicy(checked.settings.get(CLEANUP_POLICY, "")))
        if partitions > partitions_now and not move_keys and any(policy.compacts for policy in policies):
            raise BadInput(_MOVES_KEYS.format(name=name, now=partitions_now, wanted=partitions))
    if checked.settings or reset:
        alter_settings(admin, name, {**checked.settings, **dict.fromkeys(reset)})
    if partitions is not None and partitions > partitions_now:
        _add_partitions(connection, admin, name, partitions)
    return AlteredTopic(
        name=name,
        settings=checked.settings,
        reset=reset,
        partitions=partitions or partitions_now,
        warnings=checked.warnings,
    )


def delete_topic(connection: Connection, name: str) -> None:
    """Removes the topic with all its records; NotFound when there is none. It is gone from the metadata on return."""
    refuse_internal(name, "delete")
    admin = connection.admin()
    connection.topic(name, admin)
    answer(admin.delete_topics([name], request_timeout=connection.patience_s)[name], f"deleting topic {name!r}")
    _wait_until(lambda: name not in connection.reach(admin).topics, connection, f"the removal of topic {name!r}")


_MOVES_KEYS = (
    "topic {name!r} is compacted, and going from {now} to {wanted} partitions moves keys: the next record of a key may "
    "go to another partition than its older ones, which are then never compacted away, nor deleted by its tombstone. "
    "Make a new topic with {wanted} partitions and load the table into it, or accept that with --yes-move-keys"
)


def _not_created(failure: KafkaException, connection: Connection, name: str) -> LastwordError:
    if failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return AlreadyExists(
            f"topic {name!r} exists already at {connection.bootstrap_servers}: change it with  lastword topic alter "
            f"{name} --set NAME=VALUE, or remove it first with  lastword topic delete {name}"
        )
    return translated(failure, f"creating topic {name!r}")


def _refuse_no_change(name: str, settings: Mapping[str, str], reset: tuple[str, ...], partitions: int | None) -> None:
    if not settings and not reset and partitions is None:
        raise BadInput(f"nothing to alter on topic {name!r}: name a setting, a setting to reset, or partitions")
    for setting in reset:
        refuse_unknown(setting)
        if setting in settings:
            raise BadInput(f"{setting} is both set and reset on topic {name!r}: keep one of them")


def _refuse_partitions(name: str, now: int, wanted: int) -> None:
    if wanted > MOST_PARTITIONS:
        raise BadInput(f"topic {name!r} with {wanted} partitions: a topic can have 1 to {MOST_PARTITIONS}")
    if wanted < now:
        raise BadInput(
            f"topic {name!r} has {now} partitions and Kafka can't take any away: make a new topic with {wanted} and "
            "load the table into it"
        )


def _after_reset(present: Mapping[str, SettingNow], reset: tuple[str, ...]) -> dict[str, str]:
    """The values of a topic after `reset`, for the settings of our table; the broker checks the others."""
    return {
        name: TOPIC_SETTINGS[name].default if name in reset else present[name].value
        for name in TOPIC_SETTINGS
        if name in present
    }


def _add_partitions(connection: Connection, admin: AdminClient, name: str, partitions: int) -> None:
    answers = admin.create_partitions([NewPartitions(name, partitions)], request_timeout=connection.patience_s)
    answer(answers[name], f"raising topic {name!r} to {partitions} partitions (its settings are altered already)")
    _wait_until(lambda: _led(connection, admin, name, partitions), connection, f"the partitions of topic {name!r}")


def _led(connection: Connection, admin: AdminClient, name: str, partitions: int) -> bool:
    """Whether the metadata shows that many partitions and the leader of each answers."""
    topic = connection.reach(admin).topics.get(name)
    if topic is None or topic.error is not None or len(topic.partitions) != partitions:
        return False
    if any(partition.leader < 0 for partition in topic.partitions.values()):
        return False
    try:
        # The metadata names a leader before that broker knows that it leads: until then writes fail and are repeated.
        return len(offsets(connection, admin, name, topic.partitions, LATEST)) == partitions
    except LastwordError:
        return False


def _wait_until(is_visible: Callable[[], bool], connection: Connection, what: str) -> None:
    give_up_at = time.monotonic() + connection.patience_s
    while not is_visible():
        if time.monotonic() >= give_up_at:
            raise LastwordError(
                f"the cluster accepted the change, but {what} is not visible after {connection.patience_s:g} s: "
                "look again with  lastword topic list"
            )
        time.sleep(0.02)
