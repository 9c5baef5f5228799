"""The same login in the words of three clients: librdkafka, Java, and kafka-python."""

from __future__ import annotations

from collections.abc import Mapping

from lastword.jvm.quoting import quoted
from lastword.kafka.broker.security import SCRAM_LOGIN

# Older versions repeat a part of the SCRAM exchange, which Kafka 4 refuses as if the password were wrong.
FIRST_LIBRDKAFKA = "2.6.1"

# librdkafka's name -> kafka-python's.
_KAFKA_PYTHON = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
}


def for_librdkafka(bootstrap_servers: str, login: Mapping[str, str]) -> str:
    """Lines of a file for confluent-kafka, and for lastword's --config."""
    return "\n".join(f"{name}={value}" for name, value in {"bootstrap.servers": bootstrap_servers, **login}.items())


def for_java(bootstrap_servers: str, login: Mapping[str, str]) -> str:
    """Lines of a properties file for Java's clients and Kafka's own tools."""
    user, password = quoted(login["sasl.username"]), quoted(login["sasl.password"])
    lines = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": login["security.protocol"].upper(),
        "sasl.mechanism": login["sasl.mechanism"],
        "sasl.jaas.config": f"{SCRAM_LOGIN} required username={user} password={password};",
    }
    if "ssl.ca.location" in login:
        lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login["ssl.ca.location"]}
    return "\n".join(f"{name}={value}" for name, value in lines.items())


def for_kafka_python(bootstrap_servers: str, login: Mapping[str, str]) -> str:
    """Keywords for KafkaConsumer and KafkaProducer."""
    keywords = {_KAFKA_PYTHON[name]: value for name, value in login.items()}
    keywords["security_protocol"] = keywords["security_protocol"].upper()
    keywords = {"bootstrap_servers": bootstrap_servers, **keywords}
    return "\n".join(f"{name}={quoted(value)}," for name, value in keywords.items())
