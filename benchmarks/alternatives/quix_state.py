"""The alternative with Quix Streams: an application that keeps the newest value of each key in its state store.

    PYTHON_OF_QUIX quix_state.py HOST:PORT TOPIC RECORDS FOLDER GROUP

It runs in a separate environment and imports nothing from lastword. Keys and values stay bytes, so nothing is parsed.
It writes no changelog, because the topic is one, and commits every 10,000 records. The clock runs from the first record
to the last commit: joining the group is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from quixstreams import Application
from rocksdict import AccessType, Options, Rdict


def fill_state(servers: str, topic: str, records: int, folder: str, group: str) -> tuple[float, int]:
    """Seconds from the first record to the last commit, and how many rows there are."""
    app = Application(
        broker_address=servers,
        consumer_group=group,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        commit_every=10_000,
        consumer_extra_config={
            "fetch.message.max.bytes": 4 * 1024 * 1024,
            "isolation.level": "read_committed",
            "queued.min.messages": 200_000,
        },
        loglevel=None,
        state_dir=folder,
        use_changelog_topics=False,
    )
    began: list[float] = []

    def keep(value: bytes | None, state: Any) -> None:
        if not began:
            began.append(time.perf_counter())
        if value is None:
            state.delete("row")
        else:
            state.set_bytes("row", value)

    rows = app.topic(topic, key_deserializer="bytes", value_deserializer="bytes")
    app.dataframe(rows).update(keep, stateful=True)
    app.run(count=records, timeout=30)
    seconds = time.perf_counter() - began[0]
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_consumer_groups([group])[group].result()
    return seconds, sum(_rows_in(store.parent) for store in Path(folder).rglob("CURRENT"))


def _rows_in(store: Path) -> int:
    """A key of the application's has one entry, its row; the store's own entries are in other column families."""
    database = Rdict(str(store), Options(raw_mode=True), access_type=AccessType.read_only())
    return sum(1 for _ in database.keys())  # noqa: SIM118  a database is no iterable


if __name__ == "__main__":
    _, servers, topic, records, folder, group = sys.argv
    seconds, live = fill_state(servers, topic, int(records), folder, group)
    print(json.dumps({"seconds": seconds, "records": int(records), "rows": live}))
