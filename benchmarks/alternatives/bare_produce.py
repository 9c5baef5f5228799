"""The alternative to `lastword load`: the shortest loop that gives librdkafka keys and values and waits for the acks.

    python -m benchmarks.alternatives.bare_produce HOST:PORT TOPIC FILE

FILE holds `key TAB value` lines. All of them are in memory as bytes before the clock starts: the loop parses, checks
and counts nothing. The client settings are those of `lastword load`; a test compares them.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

SETTINGS: dict[str, Any] = {
    "acks": "all",
    "batch.size": 1_000_000,
    "allow.auto.create.topics": "false",
    "client.id": "lastword",
    "compression.type": "lz4",
    "delivery.report.only.error": True,
    "enable.idempotence": "true",
    "linger.ms": 50,
    "log_level": 0,
    "message.max.bytes": 64 * 1024 * 1024,
    "message.timeout.ms": 120_000,
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 512 * 1024,
    "queue.buffering.max.messages": 500_000,
    "reconnect.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
}


def produce_all(servers: str, topic: str, pairs: list[list[bytes]]) -> float:
    """Seconds from the first record handed over to the last acknowledgement."""
    failed: list[object] = []
    settings = {"bootstrap.servers": servers, **SETTINGS, "on_delivery": lambda error, _: failed.append(error)}
    producer = Producer(settings)
    produce, poll = producer.produce, producer.poll
    began = time.perf_counter()
    for key, value in pairs:
        while True:
            try:
                produce(topic, value, key)
                break
            except BufferError:
                poll(0.05)
    left = producer.flush(120)
    seconds = time.perf_counter() - began
    if failed or left:
        sys.exit(f"{len(failed) + left} records were not acknowledged")
    return seconds


if __name__ == "__main__":
    _, servers, topic, file = sys.argv
    gc.disable()  # the collector would scan a million small lists again and again while they are made
    pairs = [line.split(b"\t") for line in Path(file).read_bytes().splitlines()]
    print(json.dumps({"seconds": produce_all(servers, topic, pairs), "acknowledged": len(pairs)}))
