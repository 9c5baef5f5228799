"""How many bytes topics take on each broker's disks.

The only use of kafka-python: librdkafka, and so confluent-kafka, can't ask for log directories.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection, Properties

# librdkafka's property names, and what kafka-python calls the same thing.
_SAME_THING = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
}
_UPPER_CASE = ("security_protocol", "sasl_mechanism")
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
# The log level is that of the whole process: of two threads at once, one would restore the level that the other set.
_ONE_AT_A_TIME = threading.Lock()


# For each partition, for each broker with a replica of it: the bytes of its log.
Sizes = dict[int, dict[int, int]]


def sizes_on_disk(connection: Connection, topic: str) -> Sizes:
    """The sizes of one topic; LastwordError says why when the cluster does not give them."""
    return all_sizes_on_disk(connection, [topic])[topic]


def all_sizes_on_disk(connection: Connection, topics: list[str]) -> dict[str, Sizes]:
    """The sizes of several topics by one request, empty for a topic that does not exist; LastwordError as above.

    A replica that moves to another disk of its broker counts once, on its old disk.
    """
    sizes: dict[str, Sizes] = {topic: {} for topic in topics}
    which = repr(topics[0]) if len(topics) == 1 else f"{len(topics)} topics"
    for answer in _answers(connection, topics, which):
        broker = int(answer["broker"])
        _refuse_silence(answer["log_dirs"], which, broker)
        for directory in answer["log_dirs"]:
            for topic in directory["topics"]:
                for replica in topic["partitions"]:
                    if topic["name"] in sizes and not replica["is_future_key"]:
                        index = replica["partition_index"]
                        sizes[topic["name"]].setdefault(index, {})[broker] = replica["partition_size"]
    return {topic: dict(sorted(of_topic.items())) for topic, of_topic in sizes.items()}


def kafka_python_settings(properties: Properties) -> dict[str, Any]:
    """The part of librdkafka's client properties that decides how to connect, in kafka-python's names.

    LastwordError for such a property that kafka-python lacks: without it the connection would fail, or be made with
    less security than was asked for.
    """
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        if name in _SAME_THING:
            ours = _SAME_THING[name]
            settings[ours] = str(value).upper() if ours in _UPPER_CASE else str(value)
        elif name == _HOST_CHECK:
            settings["ssl_check_hostname"] = str(value).lower() != "none"
        elif name.startswith(("ssl.", "sasl.", "enable.ssl.")):
            raise LastwordError(f"the client that asks for sizes does not know the setting {name}")
    if settings.get("sasl_mechanism") == "OAUTHBEARER":
        raise LastwordError("the client that asks for sizes can't use sasl.mechanism=OAUTHBEARER")
    return settings


def _answers(connection: Connection, topics: list[str], which: str) -> list[dict[str, Any]]:
    settings = kafka_python_settings(connection.properties)
    patience_ms = int(connection.patience_s * 1000)
    with _quiet():
        from kafka.errors import KafkaError

        from kafka import KafkaAdminClient

        try:
            with KafkaAdminClient(
                bootstrap_servers=[address.strip() for address in connection.bootstrap_servers.split(",")],
                client_id="lastword",
                bootstrap_timeout_ms=patience_ms,
                request_timeout_ms=patience_ms,
                **settings,
            ) as admin:
                answers: list[dict[str, Any]] = admin.describe_log_dirs(topics)
                return answers
        except (KafkaError, OSError) as failure:
            raise LastwordError(f"log directories of {which} at {connection.bootstrap_servers}: {failure}") from None


def _refuse_silence(directories: list[dict[str, Any]], which: str, broker: int) -> None:
    """LastwordError for a broker that names no directory, though each has one, or an error for a directory."""
    from kafka.errors import for_code

    # kafka-python drops the error code of the whole answer. In practice that code is a missing right.
    if not directories:
        raise LastwordError(
            f"broker {broker} does not give the sizes of {which}: it needs the right DESCRIBE on the cluster"
        )
    for directory in directories:
        if directory["error_code"]:
            error = for_code(directory["error_code"])
            raise LastwordError(f"broker {broker} can't read {directory['log_dir']}: {error.__name__}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences kafka-python, which logs every attempt to connect; the user gets our error instead."""
    log = logging.getLogger("kafka")
    with _ONE_AT_A_TIME:
        level = log.level
        log.setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():
                # It reads its message schemas with a function that Python 3.11 and 3.12 call deprecated.
                warnings.simplefilter("ignore", DeprecationWarning)
                yield
        finally:
            log.setLevel(level)
