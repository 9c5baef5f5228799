"""Spark's Kafka sink, as every writer of a table writes: acknowledged by all, once for each try, murmur2."""

from __future__ import annotations

import re
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lastword.core.errors import BadInput, ClusterUnreachable, LastwordError, NotFound, WriteFailed
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.writing import MAX_RECORD_BYTES
from lastword.spark.session.client_settings import java_settings

_DEFAULTS = {
    "compression.type": "lz4",
    # As large as the other writers': whether a value fits into the topic must not depend on who writes it.
    "max.request.size": str(MAX_RECORD_BYTES),
    "buffer.memory": str(2 * MAX_RECORD_BYTES),
}
_LAW = {"acks": "all", "enable.idempotence": "true"}

_KAFKA_ERROR = re.compile(r"org\.apache\.kafka\.(?:\w+\.)*(\w+(?:Exception|Error)): *([^\n]*)")
_KINDS: dict[str, tuple[Callable[[str], LastwordError], str]] = {
    "RecordTooLargeException": (BadInput, "raise max.message.bytes of the topic, or make the value smaller"),
    "TimeoutException": (ClusterUnreachable, "is the cluster up?  lastword broker status"),
    "UnknownTopicOrPartitionException": (NotFound, "see  lastword topic list"),
    "TopicAuthorizationException": (WriteFailed, "ask the cluster's owner for the right to write"),
    "SaslAuthenticationException": (ClusterUnreachable, "check the user and password in --config"),
    "SslAuthenticationException": (ClusterUnreachable, "check the ssl.* settings in --config"),
}


def write_records(
    records: DataFrame, topic: str, connection: Connection, same: SameTopic, *, max_block_ms: int = 60_000
) -> None:
    """Writes `key` and `value`, with `headers` and `partition` if they are there; returns when all is acknowledged.

    Kafka's Java producer can't be kept from creating a topic: `same` refuses to write to a topic that is gone, and
    raises if it was created meanwhile. A task waits at most `max_block_ms` for the topic, and for a partition of it.
    """
    topic_id = same.before()
    blocking = {"max.block.ms": str(max_block_ms)}
    settings = {**_DEFAULTS, **blocking, **java_settings(connection).options, **_LAW}
    options = {f"kafka.{name}": value for name, value in settings.items()}
    try:
        records.write.format("kafka").options(**options).option("topic", topic).save()
    except (Py4JJavaError, PySparkException) as failure:
        error = _translated(str(failure), topic)
        if error is None:
            raise
        raise error from None
    same.after(topic_id)


def _translated(failure: str, topic: str) -> LastwordError | None:
    """The LastwordError for the Kafka error in Spark's message about a failed job; None if there is no such error."""
    causes = _KAFKA_ERROR.findall(failure)
    if not causes:
        return None
    # The innermost.
    name, reason = causes[-1]
    make, advice = _KINDS.get(name, (WriteFailed, "put that right"))
    return make(f"writing to {topic}: {reason.strip() or name}: {advice}; what was written stays: write all rows again")
