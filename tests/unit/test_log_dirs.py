"""librdkafka's client settings in kafka-python's names, and nothing dropped that decides how safe a connection is."""

from __future__ import annotations

import pytest

from lastword.core.errors import LastwordError
from lastword.kafka.topics.log_dirs import kafka_python_settings


def test_sasl_and_tls_settings_have_their_counterparts() -> None:
    assert kafka_python_settings(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "team-1",
            "sasl.password": "secret",
            "ssl.ca.location": "/etc/ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
        }
    ) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "team-1",
        "sasl_plain_password": "secret",
        "ssl_cafile": "/etc/ca.pem",
        "ssl_check_hostname": False,
    }


def test_settings_that_say_nothing_about_the_connection_are_left_out() -> None:
    assert kafka_python_settings({"linger.ms": 5, "client.id": "mine"}) == {}


@pytest.mark.parametrize(
    "name", ["ssl.keystore.location", "enable.ssl.certificate.verification", "sasl.oauthbearer.config"]
)
def test_a_security_setting_without_a_counterpart_is_refused_by_name_and_not_by_value(name: str) -> None:
    with pytest.raises(LastwordError, match=name) as refused:
        kafka_python_settings({name: "hidden"})
    assert "hidden" not in str(refused.value)


def test_a_token_login_is_refused() -> None:
    with pytest.raises(LastwordError, match="OAUTHBEARER"):
        kafka_python_settings({"sasl.mechanism": "OAUTHBEARER"})
