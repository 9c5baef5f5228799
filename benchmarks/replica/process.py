"""A process that makes a replica ready and closes it: a rebuild in an empty folder, otherwise a restart.

python -m benchmarks.replica.process HOST:PORT TOPIC FOLDER MEMORY_MB
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import lastword


def make_ready(servers: str, topic: str, folder: Path, memory_mb: int) -> dict[str, Any]:
    """Seconds until the replica is ready, the moment of that (monotonic), and the number of its rows."""
    with lastword.connect(servers) as cluster:
        table = cluster.table(topic)
        began = time.monotonic()
        with table.replica(folder, memory_mb=memory_mb) as replica:
            ready_at = time.monotonic()
            return {"seconds": ready_at - began, "ready_at": ready_at, "rows": len(replica)}


# The replica may start processes, which import this module again.
if __name__ == "__main__":
    _, servers, topic, folder, memory_mb = sys.argv
    print(json.dumps(make_ready(servers, topic, Path(folder), int(memory_mb))))
