"""librdkafka's settings as Kafka's Java client takes them: one file of settings serves both."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.spark.session.client_settings import JavaSettings, java_settings, portable
from support.canary import CANARY

PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.env.param.allowlist.pattern": "LASTWORD_SECRET_.*",
}


def translated(**properties: str | int | float | bool) -> JavaSettings:
    """Settings in Python spelling: `linger_ms` is `linger.ms`."""
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    return java_settings(Connection(bootstrap_servers="host:9092", properties=dotted))


def options(**properties: str | int | float | bool) -> dict[str, str]:
    """What is translated, without the address."""
    found = dict(translated(**properties).options)
    assert found.pop("bootstrap.servers") == "host:9092"
    return found


def test_a_connection_without_settings_is_its_address() -> None:
    assert translated() == JavaSettings(options={"bootstrap.servers": "host:9092"}, secrets={})


@pytest.mark.parametrize(
    ("name", "value", "java_name", "java_value"),
    [
        ("client.id", "me", "client.id", "me"),
        ("client.rack", "a", "client.rack", "a"),
        ("fetch.wait.max.ms", 5, "fetch.max.wait.ms", "5"),
        ("fetch.message.max.bytes", 1000, "max.partition.fetch.bytes", "1000"),
        ("message.max.bytes", 1000, "max.request.size", "1000"),
        ("compression.codec", "zstd", "compression.type", "zstd"),
        ("queue.buffering.max.ms", 5.5, "linger.ms", "5.5"),
        ("socket.timeout.ms", 5000, "request.timeout.ms", "5000"),
        ("security.protocol", "sasl_ssl", "security.protocol", "SASL_SSL"),
        ("ssl.endpoint.identification.algorithm", "none", "ssl.endpoint.identification.algorithm", ""),
        ("ssl.endpoint.identification.algorithm", "https", "ssl.endpoint.identification.algorithm", "https"),
    ],
)
def test_a_setting_keeps_its_meaning(name: str, value: str | float, java_name: str, java_value: str) -> None:
    made = java_settings(Connection(bootstrap_servers="host:9092", properties={name: value}))

    assert made == JavaSettings(options={"bootstrap.servers": "host:9092", java_name: java_value})


@pytest.mark.parametrize(
    "name",
    [
        "acks",
        "isolation.level",
        "debug",
        "log_level",
        "queued.min.messages",
        "socket.keepalive.enable",
        "statistics.interval.ms",
        "check.crcs",
        "group.id",
        "enable.auto.commit",
    ],
)
def test_what_is_librdkafka_s_own_business_is_left_out(name: str) -> None:
    value = {"acks": "all", "isolation.level": "read_committed"}.get(name, "1")
    made = java_settings(Connection(bootstrap_servers="host:9092", properties={name: value}))

    assert made.options == {"bootstrap.servers": "host:9092"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
@pytest.mark.parametrize("name", ["sasl_mechanism", "sasl_mechanisms"])
def test_a_login_is_a_reference_to_a_variable_with_the_password(mechanism: str, module: str, name: str) -> None:
    login: dict[str, str] = {name: mechanism, "sasl_username": "ann", "sasl_password": 'p"w\\d'}

    made = translated(**login)

    assert made.options == {
        "bootstrap.servers": "host:9092",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": "${env:LASTWORD_SECRET_SASL_JAAS_CONFIG}",
        **PROVIDER,
    }
    assert made.secrets == {
        "LASTWORD_SECRET_SASL_JAAS_CONFIG": f"org.apache.kafka.common.security.{module} required "
        'username="ann" password="p\\"w\\\\d";'
    }


def test_a_password_is_in_no_repr() -> None:
    made = translated(sasl_mechanism="PLAIN", sasl_username="ann", sasl_password=CANARY)

    assert CANARY not in repr(made)


def test_kerberos_is_refused_by_its_mechanism_and_not_by_one_of_its_settings() -> None:
    with pytest.raises(BadInput, match=r"sasl\.mechanism=GSSAPI: for Spark lastword translates PLAIN, SCRAM"):
        translated(sasl_kerberos_keytab="a.keytab", sasl_kerberos_principal="ann", sasl_mechanism="GSSAPI")


def test_another_mechanism_is_refused_with_those_that_work() -> None:
    with pytest.raises(BadInput, match=r"sasl\.mechanism=OAUTHBEARER: for Spark lastword translates PLAIN, SCRAM"):
        translated(sasl_mechanism="OAUTHBEARER")


def test_certificates_become_stores_and_the_key_a_secret(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / f"{name}.pem").write_text(f"-----BEGIN {name}-----\n")

    made = translated(
        ssl_ca_location=str(tmp_path / "ca.pem"),
        ssl_certificate_location=str(tmp_path / "certificate.pem"),
        ssl_key_location=str(tmp_path / "key.pem"),
        ssl_key_password=CANARY,
    )

    assert made.options == {
        "bootstrap.servers": "host:9092",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----BEGIN ca-----\n",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "-----BEGIN certificate-----\n",
        "ssl.keystore.key": "${env:LASTWORD_SECRET_SSL_KEYSTORE_KEY}",
        "ssl.key.password": "${env:LASTWORD_SECRET_SSL_KEY_PASSWORD}",
        **PROVIDER,
    }
    assert made.secrets == {
        "LASTWORD_SECRET_SSL_KEYSTORE_KEY": "-----BEGIN key-----\n",
        "LASTWORD_SECRET_SSL_KEY_PASSWORD": CANARY,
    }


def test_a_certificate_s_remarks_may_be_in_any_language(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("# Zürich\nCA\n", encoding="utf-8")

    assert options(ssl_ca_location=str(tmp_path / "ca.pem"))["ssl.truststore.certificates"] == "# Zürich\nCA\n"


def test_a_portable_connection_has_the_text_of_its_files(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / f"{name}.pem").write_text(f"{name} text")
    files = {f"ssl.{name}.location": str(tmp_path / f"{name}.pem") for name in ("ca", "certificate", "key")}
    here = Connection(bootstrap_servers="host:9092", properties={**files, "client.id": "me"}, patience_s=3)

    assert portable(here) == Connection(
        bootstrap_servers="host:9092",
        properties={
            "ssl.ca.pem": "ca text",
            "ssl.certificate.pem": "certificate text",
            "ssl.key.pem": "key text",
            "client.id": "me",
        },
        patience_s=3,
    )


def test_a_portable_connection_whose_file_is_gone_is_refused_by_the_setting(tmp_path: Path) -> None:
    here = Connection(bootstrap_servers="host:9092", properties={"ssl.key.location": str(tmp_path / "gone.pem")})

    with pytest.raises(BadInput, match=r"ssl\.key\.location=.*gone\.pem: No such file or directory"):
        portable(here)


def test_certificates_given_as_text_are_taken_as_they_are() -> None:
    assert options(ssl_ca_pem="CA")["ssl.truststore.certificates"] == "CA"


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file or directory"), (b"\xff\xfe", "not PEM text")])
def test_a_certificate_that_can_t_be_read_is_named(content: bytes | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(BadInput, match=rf"ssl\.ca\.location={file}: {reason}: Spark's client takes PEM files"):
        translated(ssl_ca_location=str(file))


def test_a_check_of_certificates_can_t_be_turned_off() -> None:
    assert options(enable_ssl_certificate_verification=True) == {}
    with pytest.raises(BadInput, match=r"always verifies; give the authority's certificate as ssl\.ca\.location"):
        translated(enable_ssl_certificate_verification=False)


def test_a_setting_without_a_counterpart_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"client setting sasl\.oauthbearer\.config: .* has no counterpart"):
        translated(sasl_oauthbearer_config="x")
