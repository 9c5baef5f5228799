"""A writer that keeps a pace and notes when its samples were handed over and when they were acknowledged.

    python -m lastword.bench.paced_writer HOST:PORT TOPIC PER_SECOND SECONDS PREFIX

The client settings are those of `Table.put`. At most a hundred writes a second are samples, under keys of their own
(PREFIX and a number); the others update rows that are there.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from lastword.kafka.connection import Connection

_SAMPLES_PER_SECOND = 100
_VALUE = b'{"userId":"user-0","name":"Alice Smith","city":"Berlin","score":42.5,"active":true,"plan":"free"}'


def samples_of(per_second: int, seconds: int) -> int:
    return min(per_second, _SAMPLES_PER_SECOND) * seconds


def write_paced(servers: str, topic: str, per_second: int, seconds: int, prefix: str) -> dict[str, list[float]]:
    """The key of each sample -> when it was handed over and when its delivery report came (monotonic)."""
    times: dict[str, list[float]] = {}
    failed: list[Any] = []
    producer = Connection(bootstrap_servers=servers).producer(linger_ms=0, compression_type="lz4")
    every = max(1, per_second // _SAMPLES_PER_SECOND)

    def reported(error: Any, message: Any) -> None:
        now = time.monotonic()
        if error is not None:
            failed.append(error)
        elif message.key().startswith(sampled):
            times[message.key().decode()].append(now)

    sampled = prefix.encode()
    producer.list_topics(topic, timeout=10)  # so that the first sample does not wait for the connection
    began = time.monotonic()
    for number in range(per_second * seconds):
        while (early := began + number / per_second - time.monotonic()) > 0:
            producer.poll(early)
        key = f"user-{number * 7919 % 500}"
        if number % every == 0:
            key = f"{prefix}{number // every}"
            times[key] = [time.monotonic()]
        producer.produce(topic, _VALUE, key, on_delivery=reported)
        producer.poll(0)
    if producer.flush(30) or failed:
        sys.exit(f"not every write was acknowledged: {failed[:1]}")
    return times


if __name__ == "__main__":
    _, servers, topic, per_second, seconds, prefix = sys.argv
    print(json.dumps(write_paced(servers, topic, int(per_second), int(seconds), prefix)))
