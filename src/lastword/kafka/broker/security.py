"""A local cluster that asks for a password: its secrets, the settings of its brokers, and what clients need.

clusters/NAME/secrets.json        passwords, for its owner alone
clusters/NAME/client.properties   how to log in as the administrator, for `--config`, for its owner alone
accounts/CLUSTER-ID/USER.properties   the same for each user that was added from this home, to any cluster

Clients log in with SCRAM-SHA-256 (and over TLS, if asked for). An action is refused unless the user was given the
right to it. Controllers have a separate password and listener.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from lastword.core.durable import write_durably
from lastword.core.errors import BrokerFailed
from lastword.core.home import private_folder
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.jvm.java import Java
from lastword.jvm.quoting import quoted
from lastword.kafka.broker.certificates import ca_certificate, ensure_certificates, tls_settings
from lastword.kafka.client.connection import Properties

# Who is let in: everyone, or users with a password, in the clear or over TLS.
Security = Literal["open", "scram", "scram-tls"]

ADMIN, CONTROLLER = "admin", "controller"
MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def new_password() -> str:
    """Letters, digits, - and _: no quoting changes it anywhere."""
    return secrets.token_urlsafe(24)


class Secrets(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`secrets.json`: the passwords of a cluster. They are not in its repr, so that none gets into a message."""

    admin: str
    controller: str
    keys: str  # of the files that TLS keys are in

    def __repr__(self) -> str:
        return "Secrets(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """No fields: rich and pytest show a Struct by this."""
        return []


def load_secrets(folder: Path) -> Secrets:
    path = folder / "secrets.json"
    try:
        return from_json_text(path.read_bytes(), Secrets)
    except (OSError, ValueError):
        raise BrokerFailed(
            f"{path} can't be read, and without it nobody gets into the cluster: restore it, or remove the folder "
            f"{folder} to start afresh (its topics go with it)"
        ) from None


def ensure_secrets(folder: Path) -> Secrets:
    """The passwords of the cluster; new ones if it has none."""
    if not (folder / "secrets.json").exists():
        passwords = Secrets(admin=new_password(), controller=new_password(), keys=new_password())
        write_durably(folder / "secrets.json", json_text(passwords).encode())
    return load_secrets(folder)


def remove_access_control(folder: Path) -> None:
    """Removes passwords and certificates, of a cluster whose first start failed."""
    for name in ("secrets.json", "client.properties"):
        (folder / name).unlink(missing_ok=True)
    for name in ("tls", "tls.new"):
        shutil.rmtree(folder / name, ignore_errors=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class AccessControl:
    """What makes a cluster ask for a password: settings of its brokers, arguments for the tool that formats data."""

    broker_settings: Mapping[str, str]
    format_arguments: tuple[str, ...]


def access_control(folder: Path, security: Security, java: Java, *, is_new: bool) -> AccessControl:
    """Makes passwords and certificates for a cluster that is new; empty where everyone is let in."""
    if security == "open":
        return AccessControl(broker_settings={}, format_arguments=())
    # An existing cluster keeps its passwords: with others nobody would get in.
    passwords = ensure_secrets(folder) if is_new else load_secrets(folder)
    settings = _broker_settings(security, passwords)
    if security == "scram-tls":
        ensure_certificates(folder, java, passwords.keys)
        settings |= tls_settings(folder, passwords.keys)
    # The administrator must be known before the first start.
    account = f"{MECHANISM}=[name={ADMIN},iterations={ITERATIONS},password={passwords.admin}]"
    return AccessControl(broker_settings=settings, format_arguments=("--add-scram", account))


def _broker_settings(security: Security, passwords: Secrets) -> dict[str, str]:
    clients = "SASL_SSL" if security == "scram-tls" else "SASL_PLAINTEXT"
    return {
        "listener.security.protocol.map": f"CLIENTS:{clients},CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "listener.name.clients.scram-sha-256.sasl.jaas.config": _login(SCRAM_LOGIN, ADMIN, passwords.admin),
        # SCRAM is not for controllers: they would have to know the passwords before they have read their log.
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": _login(
            _PLAIN_LOGIN, CONTROLLER, passwords.controller, **{f"user_{CONTROLLER}": passwords.controller}
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{ADMIN};User:{CONTROLLER}",
    }


def admin_settings(folder: Path, security: Security) -> dict[str, str]:
    """How the administrator logs in, in librdkafka's names; nothing where everyone is let in."""
    if security == "open":
        return {}
    over_tls = {"ssl.ca.location": str(ca_certificate(folder))} if security == "scram-tls" else {}
    return {
        "security.protocol": "sasl_ssl" if over_tls else "sasl_plaintext",
        "sasl.mechanism": MECHANISM,
        "sasl.username": ADMIN,
        "sasl.password": load_secrets(folder).admin,
        **over_tls,
    }


def login_like(settings: Properties, name: str, password: str) -> dict[str, str]:
    """How another user gets into the cluster that these settings are for."""
    protocol = {key: str(settings[key]) for key in ("security.protocol", "ssl.ca.location") if key in settings}
    return {**protocol, "sasl.mechanism": MECHANISM, "sasl.username": name, "sasl.password": password}


def client_file(folder: Path) -> Path:
    return folder / "client.properties"


def account_file(home: Path, cluster_id: str, name: str) -> Path:
    return home / "accounts" / cluster_id / f"{name}.properties"


def write_client_file(path: Path, bootstrap_servers: str, settings: Mapping[str, str]) -> None:
    """A file for `--config`, that only its owner can read."""
    lines = [f"{name}={value}\n" for name, value in {"bootstrap.servers": bootstrap_servers, **settings}.items()]
    private_folder(path.parent)
    write_durably(path, "".join(lines).encode())


def _login(module: str, name: str, password: str, **others: str) -> str:
    options = {"username": name, "password": password, **others}
    return f"{module} required {' '.join(f'{key}={quoted(value)}' for key, value in options.items())};"
