"""The alternative to `lastword dump`: the shortest loop that takes every record from librdkafka and throws it away.

    python -m benchmarks.alternatives.bare_consume HOST:PORT TOPIC RECORDS

The loop reads no key, no value and no offset. The topic must hold RECORDS records and must not grow meanwhile. Each
partition adds one end-of-partition event, so the loop knows when it has everything. The client settings are those of
`lastword dump`; a test compares them.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

SETTINGS: dict[str, Any] = {
    "auto.offset.reset": "error",
    "allow.auto.create.topics": "false",
    "client.id": "lastword",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 50,
    "group.id": "lastword",
    "isolation.level": "read_committed",
    "log_level": 0,
    "queued.min.messages": 200_000,
    "reconnect.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
}


def consume_all(servers: str, topic: str, records: int) -> float:
    """Seconds from the assignment to the last record and the last end of a partition."""
    consumer = Consumer({"bootstrap.servers": servers, **SETTINGS})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    left = records + len(partitions)
    began = time.perf_counter()
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    while left:
        # As `lastword` reads: consume(10_000, 1.0) alone would wait for a whole second at the end of the log.
        head = consumer.poll(30)
        if head is None:
            sys.exit(f"no record came for 30 s: {left} records and ends of partitions are missing")
        left -= 1 + len(consumer.consume(9_999, 0))
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


if __name__ == "__main__":
    _, servers, topic, records = sys.argv
    print(json.dumps({"seconds": consume_all(servers, topic, int(records)), "records": int(records)}))
