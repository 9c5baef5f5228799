"""A process that measures how long an acknowledged write takes to be visible in a replica.

    python -m benchmarks.replica.latency HOST:PORT TOPIC FOLDER PER_SECOND SECONDS

The writer is another process (`paced_writer`). It notes when each sample was handed to the client and when the sample
was acknowledged. This process looks for the samples in the Mapping again and again, and notes when it first saw each.
Both read the monotonic clock of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import Any

import lastword
from benchmarks.input.paced_writer import Pace

_LOOK_EVERY_SECONDS = 0.0005
# Samples in different partitions may overtake one another.
_LOOKED_FOR_AT_ONCE = 4
_PATIENCE_SECONDS = 30
_UPDATED_KEYS = 500


def latencies_ms(servers: str, topic: str, folder: Path, pace: Pace) -> tuple[list[float], list[float]]:
    """The time of each sample until it is visible: from its write, and from its acknowledgement (0 if seen before)."""
    prefix = f"sample-{uuid.uuid4().hex[:8]}-"
    with lastword.connect(servers) as cluster:
        table = cluster.table(topic)
        with (
            table.replica(folder) as replica,
            subprocess.Popen(pace.writer(servers, topic, prefix), stdout=subprocess.PIPE) as writer,
        ):
            try:
                seen_at = _watch(replica, prefix, pace.samples, pace.seconds + _PATIENCE_SECONDS)
                printed, _ = writer.communicate(timeout=_PATIENCE_SECONDS)
            except BaseException:
                writer.kill()
                raise
    times = json.loads(printed)
    from_write = [(seen - times[key][0]) * 1000 for key, seen in seen_at.items()]
    return from_write, [max(0.0, seen - times[key][1]) * 1000 for key, seen in seen_at.items()]


def _watch(replica: Mapping[str, Any], prefix: str, samples: int, patience_s: float) -> dict[str, float]:
    """Key -> when the sample was first visible."""
    awaited = [f"{prefix}{number}" for number in range(samples)]
    seen_at: dict[str, float] = {}
    deadline = time.monotonic() + patience_s
    while awaited:
        for key in awaited[:_LOOKED_FOR_AT_ONCE]:
            if key in replica:
                seen_at[key] = time.monotonic()
                awaited.remove(key)
        if time.monotonic() > deadline:
            sys.exit(f"{len(awaited)} of {samples} samples did not arrive within {patience_s:.0f} s")
        time.sleep(_LOOK_EVERY_SECONDS)
    return seen_at


if __name__ == "__main__":
    _, servers, topic, folder, per_second, seconds = sys.argv
    pace = Pace(per_second=int(per_second), seconds=int(seconds), keys=_UPDATED_KEYS)
    latencies = latencies_ms(servers, topic, Path(folder), pace)
    from_write, from_acknowledgement = (quantiles(each, n=100, method="inclusive") for each in latencies)
    p50, p99 = 49, 98
    print(
        json.dumps(
            {
                "p50": from_acknowledgement[p50],
                "p99": from_acknowledgement[p99],
                "p50 from the write": from_write[p50],
                "p99 from the write": from_write[p99],
            }
        )
    )
