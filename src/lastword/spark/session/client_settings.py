"""Client settings in librdkafka's names, as Kafka's Java client takes them: one `--config` file serves both.

What would show in a plan, a log or Spark's UI must hold no secret. So a secret's setting is only a reference to an
environment variable, which Kafka's own client resolves (its EnvVarConfigProvider) in the process that connects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lastword.core.errors import BadInput
from lastword.jvm.quoting import quoted
from lastword.kafka.client.connection import LAW, Connection

# Spark shows the names of an executor's variables and hides the value of each whose name says that it is a secret.
SECRET_PREFIX = "LASTWORD_SECRET_"  # noqa: S105 - a name, not a secret

# The same meaning under the same name.
_SAME = frozenset(
    {
        "batch.size",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.type",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "linger.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "sasl.mechanism",
        "session.timeout.ms",
        "ssl.cipher.suites",
        "ssl.key.password",
    }
)
# The same meaning under another name.
_RENAMED = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "message.max.bytes": "max.request.size",
    "queue.buffering.max.ms": "linger.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
# librdkafka's setting for the text of a file: for machines that don't have the file, and for the Java client, which
# wants certificate and key in one store where librdkafka has two files.
_AS_TEXT = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}
# Settings of the inside of librdkafka, or of its log: the Java client needs none of these.
_OURS_ALONE = (
    "allow.auto.create.topics",
    "api.version",
    "auto.",
    "broker.",
    "builtin.features",
    "debug",
    "delivery.",
    "enable.",
    "group.id",
    "log",
    "message.",
    "queue",
    "socket.",
    "statistics.",
    "topic.metadata.",
)
_ALSO_OURS = {"fetch.error.backoff.ms", "fetch.queue.backoff.ms", "check.crcs", "retries", "max.in.flight"}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SECRETS = frozenset({"sasl.jaas.config", "ssl.key.password", "ssl.keystore.key"})


@dataclass(frozen=True, kw_only=True)
class JavaSettings:
    """`options` hold no secret; `secrets` are the environment variables that the options refer to."""

    options: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def java_settings(connection: Connection) -> JavaSettings:
    """The settings of a connection for the Java client; BadInput names a setting that this client does not have."""
    given = {name: _text(value) for name, value in portable(connection).properties.items()}
    # First: otherwise the error for an unknown mechanism would name one of its settings.
    login = _login(given)
    plain: dict[str, str] = {}
    for name, value in given.items():
        plain.update(_translated(name, value))
    plain.update(login)
    plain.update(_stores(plain))
    options = {"bootstrap.servers": connection.bootstrap_servers}
    secrets: dict[str, str] = {}
    for name, value in plain.items():
        if name in _SECRETS:
            variable = SECRET_PREFIX + name.upper().replace(".", "_")
            secrets[variable] = value
            options[name] = f"${{env:{variable}}}"
        else:
            options[name] = value
    if secrets:
        options["config.providers"] = "env"
        options["config.providers.env.class"] = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        options["config.providers.env.param.allowlist.pattern"] = f"{SECRET_PREFIX}.*"
    return JavaSettings(options=options, secrets=secrets)


def portable(connection: Connection) -> Connection:
    """The connection for a machine without its TLS files: with the text of the files, which librdkafka takes too."""
    properties: dict[str, str | int | float | bool] = {}
    for name, value in connection.properties.items():
        if text_name := _AS_TEXT.get(name):
            properties[text_name] = _content(name, _text(value))
        else:
            properties[name] = value
    return replace(connection, properties=properties)


def _translated(name: str, value: str) -> dict[str, str]:
    """A setting under its Java name; nothing for a setting that only librdkafka knows, or that `_login` reads."""
    if special := _SPECIAL.get(name):
        return special(value)
    if name in _SAME:
        return {name: value}
    if java_name := _RENAMED.get(name):
        return {java_name: value}
    if name in LAW or name in _ALSO_OURS or name in _LOGIN or name.startswith(_OURS_ALONE):
        return {}
    raise BadInput(
        f"client setting {name}: Kafka's Java client, which Spark uses, has no counterpart that lastword knows: "
        "remove the line for this command"
    )


def _host_check(value: str) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": "" if value == "none" else value}


def _certificate_check(value: str) -> dict[str, str]:
    if value.lower() == "true":
        return {}
    raise BadInput(
        f"client setting enable.ssl.certificate.verification={value}: Kafka's Java client always verifies; "
        "give the authority's certificate as ssl.ca.location"
    )


def _protocol(value: str) -> dict[str, str]:
    # librdkafka takes small letters too, and its examples have them.
    return {"security.protocol": value.upper()}


_SPECIAL: dict[str, Callable[[str], dict[str, str]]] = {
    "enable.ssl.certificate.verification": _certificate_check,
    "security.protocol": _protocol,
    "ssl.endpoint.identification.algorithm": _host_check,
}
# Read by `_login`.
_LOGIN = ("sasl.username", "sasl.password")


def _login(given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms"))
    if mechanism is None:
        return {}
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        known = ", ".join(_LOGIN_MODULES)
        raise BadInput(
            f"client setting sasl.mechanism={mechanism}: for Spark lastword translates {known}: use one of them"
        )
    user, password = given.get("sasl.username", ""), given.get("sasl.password", "")
    return {"sasl.jaas.config": f"{module} required username={quoted(user)} password={quoted(password)};"}


def _stores(plain: Mapping[str, str]) -> dict[str, str]:
    pem = {}
    if "ssl.truststore.certificates" in plain:
        pem["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.certificate.chain" in plain:
        pem["ssl.keystore.type"] = "PEM"
    return pem


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not PEM text"
        raise BadInput(f"client setting {name}={path}: {reason}: Spark's client takes PEM files") from None


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
