"""The alternative without a C library: kafka-python reads the topic into a dict, in memory only.

    python kafka_python_dict.py HOST:PORT TOPIC RECORDS

It reads committed data only, in fetches as large as lastword's. It writes nothing to disk.
"""

from __future__ import annotations

import json
import sys
import time

from kafka import KafkaConsumer, TopicPartition

FETCH_BYTES = 4 * 1024 * 1024


def read_all(servers: str, topic: str, records: int) -> tuple[float, int]:
    """Seconds from the assignment to the last record, and how many rows there are."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        enable_auto_commit=False,
        fetch_max_bytes=4 * FETCH_BYTES,
        isolation_level="read_committed",
        max_partition_fetch_bytes=FETCH_BYTES,
        max_poll_records=10_000,
    )
    partitions = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
    rows: dict[bytes, bytes] = {}
    left = records
    began = time.perf_counter()
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    while left > 0:
        polled = consumer.poll(timeout_ms=30_000)
        if not polled:
            sys.exit(f"no record came for 30 s: {left} records are missing")
        for batch in polled.values():
            left -= len(batch)
            for record in batch:
                if record.value is None:
                    rows.pop(record.key, None)
                else:
                    rows[record.key] = record.value
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds, len(rows)


if __name__ == "__main__":
    _, servers, topic, records = sys.argv
    seconds, live = read_all(servers, topic, int(records))
    print(json.dumps({"seconds": seconds, "records": int(records), "rows": live}))
