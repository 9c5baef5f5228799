"""Accounts of a cluster that asks for a login: users with passwords (SCRAM-SHA-256), and their rights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka.admin import AdminClient

from lastword.core.errors import AlreadyExists, BadInput, LastwordError, NotFound
from lastword.core.nearest import did_you_mean
from lastword.kafka.broker.security import ADMIN, CONTROLLER, ITERATIONS, new_password
from lastword.kafka.client.admin_types import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import answer
from lastword.kafka.topics.topic_names import refuse_illegal

_PATIENCE_S = 10.0
_TAKEN = (ADMIN, CONTROLLER, "ANONYMOUS")


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What a user may do: topics to read, topics to write, and the consumer groups to read them as."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (("read", self.read), ("write", self.write), ("group", self.groups))
        return "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names) or "nothing"


@dataclass(frozen=True, kw_only=True)
class ClusterUser:
    name: str
    rights: Rights = field(default_factory=Rights)


def check_user_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise BadInput(
            f"user name {name!r}: use at most 100 letters, digits, '-', '_' and '.', and start with a letter or digit"
        )
    if name in _TAKEN:
        raise BadInput(f"user name {name!r}: the cluster uses this one itself; take another")


def add_user(connection: Connection, name: str, rights: Rights, save: Callable[[str], None] = lambda _: None) -> str:
    """Makes the account with its rights and returns its password, which can't be shown again.

    `save` gets the password before it is valid: no crash leaves an account whose password is lost.
    """
    check_user_name(name)
    for topic in (*rights.read, *rights.write):
        refuse_illegal(topic)
    for group in rights.groups:
        # For Kafka * means all groups.
        if not group.strip() or "*" in group:
            raise BadInput(f"consumer group {group!r}: give the name of one group")
    if not (rights.read or rights.write or rights.groups):
        raise BadInput(f"user {name!r} would have no right at all: give it one with --read, --write or --group")
    admin = connection.admin()
    if name in _rights_of_all(admin):
        raise AlreadyExists(
            f"user {name!r} exists already at {connection.bootstrap_servers}: remove it first with  "
            f"lastword broker user remove {name}  (and the options that name the cluster)"
        )
    # Rights first: a user is known by its rights, and a user without a password can be removed and made again.
    for binding, future in admin.create_acls(list(_bindings(name, rights)), request_timeout=_PATIENCE_S).items():
        answer(future, f"giving {name!r} rights on {binding.name}")
    password = new_password()
    save(password)
    _set_password(admin, name, password)
    return password


def list_users(connection: Connection) -> list[ClusterUser]:
    """All users with rights, by name; the administrator is not listed, and has all rights."""
    rights = _rights_of_all(connection.admin())
    return [ClusterUser(name=name, rights=rights[name]) for name in sorted(rights)]


def remove_user(connection: Connection, name: str) -> None:
    """Removes every right and the password; records that the user has written stay."""
    check_user_name(name)
    admin = connection.admin()
    users = _rights_of_all(admin)
    if name not in users:
        hint = did_you_mean(name, users) or "see  lastword broker user list"
        raise NotFound(f"no user {name!r} at {connection.bootstrap_servers}: {hint}")
    # The account stays, with a password that nobody knows. If an account was deleted, a cluster on Kafka 4.3.0 loses
    # all passwords of that kind at its next start, when it reads its log again, and lets nobody in.
    _set_password(admin, name, new_password())
    (future,) = admin.delete_acls([_filter(f"User:{name}")], request_timeout=_PATIENCE_S).values()
    answer(future, f"taking the rights of {name!r}")


def _set_password(admin: AdminClient, name: str, password: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, ITERATIONS)
    upsert = UserScramCredentialUpsertion(name, info, password.encode())
    answer(admin.alter_user_scram_credentials([upsert], request_timeout=_PATIENCE_S)[name], f"the password of {name!r}")


def _rights_of_all(admin: AdminClient) -> dict[str, Rights]:
    """The rights of every user who has any, by name."""
    # First, because the client shows a refusal to list rights as an empty list.
    cluster = answer(
        admin.describe_cluster(include_authorized_operations=True, request_timeout=_PATIENCE_S), "the cluster"
    )
    if not {AclOperation.DESCRIBE, AclOperation.ALTER} <= {*(cluster.authorized_operations or ())}:
        raise LastwordError(
            "the cluster's users: not allowed: it needs the rights Describe and Alter on the cluster, as its "
            "administrator has; use the administrator's login with --config"
        )
    bindings = answer(admin.describe_acls(_filter(None), request_timeout=_PATIENCE_S), "the cluster's users")
    users = {each.principal.removeprefix("User:") for each in bindings if each.principal.startswith("User:")}
    return {user: _rights_in([each for each in bindings if each.principal == f"User:{user}"]) for user in users}


def _rights_in(bindings: list[AclBinding]) -> Rights:
    def names(kind: ResourceType, operation: AclOperation) -> tuple[str, ...]:
        return tuple(sorted(each.name for each in bindings if (each.restype, each.operation) == (kind, operation)))

    return Rights(
        read=names(ResourceType.TOPIC, AclOperation.READ),
        write=names(ResourceType.TOPIC, AclOperation.WRITE),
        groups=names(ResourceType.GROUP, AclOperation.READ),
    )


def _bindings(user: str, rights: Rights) -> Iterator[AclBinding]:
    """Reading and writing both include the right Describe."""
    kinds: Sequence[tuple[ResourceType, AclOperation, Iterable[str]]] = (
        (ResourceType.TOPIC, AclOperation.READ, rights.read),
        (ResourceType.TOPIC, AclOperation.WRITE, rights.write),
        (ResourceType.GROUP, AclOperation.READ, rights.groups),
    )
    for kind, operation, names in kinds:
        for name in names:
            yield AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )


def _filter(principal: str | None) -> AclBindingFilter:
    """Rights of any kind, of one principal or of all."""
    anything: Any = None
    return AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        principal or anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
