"""A process that writes at a steady rate, and notes when its samples were handed over and acknowledged.

    python -m benchmarks.input.paced_writer HOST:PORT TOPIC PREFIX PER_SECOND SECONDS KEYS BURST_MS

The client settings are those of `Table.put`. With BURST_MS above 0, all records of so many milliseconds are written
together, which costs little CPU. At most a hundred writes a second are samples: their keys are PREFIX and a number. The
other writes update existing rows. Each value has the number of its write and the moment it was handed to the client.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring.commands import python
from lastword.kafka.client.connection import Connection

_SAMPLES_PER_SECOND = 100
_VALUE = b'{"userId":"user-0","name":"Alice Smith","city":"Berlin","active":true,"number":%d,"handed_over":%.6f}'


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast and how long to write, and to how many keys (from user-0 on)."""

    per_second: int
    seconds: int
    keys: int
    burst_ms: int = 0

    @property
    def records(self) -> int:
        return self.per_second * self.seconds

    @property
    def samples(self) -> int:
        return min(self.per_second, _SAMPLES_PER_SECOND) * self.seconds

    @property
    def sampled_every(self) -> int:
        """Each write whose number is a multiple of this is a sample. Samples have their own numbers."""
        return max(1, self.per_second // _SAMPLES_PER_SECOND)

    def writer(self, servers: str, topic: str, prefix: str) -> list[str]:
        """The command of the writer."""
        numbers = (self.per_second, self.seconds, self.keys, self.burst_ms)
        return python("input.paced_writer", servers, topic, prefix, *map(str, numbers))


def write_paced(servers: str, topic: str, prefix: str, pace: Pace) -> dict[str, list[float]]:
    """The key of each sample -> when it was handed over and when its delivery report came (monotonic)."""
    times: dict[str, list[float]] = {}
    failed: list[Any] = []
    producer = Connection(bootstrap_servers=servers).producer(linger_ms=pace.burst_ms, compression_type="lz4")
    every = pace.sampled_every

    def on_delivery(error: Any, message: Any) -> None:
        now = time.monotonic()
        if error is not None:
            failed.append(error)
        elif message.key().startswith(sampled):
            times[message.key().decode()].append(now)

    sampled = prefix.encode()
    producer.list_topics(topic, timeout=10)  # so that the first sample does not wait for the connection
    began = time.monotonic()
    for number in range(pace.records):
        while (early := began + number / pace.per_second - time.monotonic()) > 0:
            producer.poll(early + pace.burst_ms / 1000)
        key, now = f"user-{number * 7919 % pace.keys}", time.monotonic()
        if number % every == 0:
            key = f"{prefix}{number // every}"
            times[key] = [now]
        producer.produce(topic, _VALUE % (number, now), key, on_delivery=on_delivery)
        if not pace.burst_ms:
            producer.poll(0)
    if producer.flush(30) or failed:
        sys.exit(f"not every write was acknowledged: {failed[:1]}")
    return times


if __name__ == "__main__":
    _, servers, topic, prefix, *numbers = sys.argv
    per_second, seconds, keys, burst_ms = map(int, numbers)
    pace = Pace(per_second=per_second, seconds=seconds, keys=keys, burst_ms=burst_ms)
    print(json.dumps(write_paced(servers, topic, prefix, pace)))
