"""The profile scenario, step by step on a real cluster: write, update, compact, watch, delete.

Each step reports its title, the equivalent command and its result. A step with an unexpected result ends the demo with
an error.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lastword.api.table import Table
from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.demo.people import FIRST_FIVE, LAST_FIVE, LIVE_UPDATE, PARTITIONS, TOPIC_SETTINGS, UPDATES, Profile
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import follow, log_bounds, read_log
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.kafka.topics.topic_description import list_topics
from lastword.kafka.topics.topic_scan import scan_topic
from lastword.processes.background_loop import BackgroundLoop

TOPIC = "demo-profiles"
_ANOTHER_WRITER = "stop any other program that writes to this topic, and run the demo again"
Report = Callable[[str, str, str], None]


@dataclass(frozen=True, kw_only=True)
class ProfilesDemo:
    """The scenario; `report` gets the title, the equivalent command and the result of each step."""

    connection: Connection
    home: Path
    report: Report

    def play(self) -> None:
        self._create()
        with Table(self.connection, TOPIC) as users:
            self._write(users, FIRST_FIVE, "Five users, all version 1", 5)
            self._write(users, UPDATES, "Three updates: the log keeps every version", 8)
            self._write(users, LAST_FIVE, "Five more users", 13)
            self._compact("Compact: only the last word on each key stays", 10)
            self._show_versions()
            self._watch(users)
            self._delete(users)
            self._values_that_are_not_tombstones(users)
            self._partitions(users)

    def _create(self) -> None:
        if any(topic.name == TOPIC for topic in list_topics(self.connection)):
            delete_topic(self.connection, TOPIC)
        create_topic(self.connection, TOPIC, partitions=PARTITIONS, settings=TOPIC_SETTINGS)
        settings = " ".join(f"--set {name}={value}" for name, value in TOPIC_SETTINGS.items())
        self.report(
            f"A compacted topic with {PARTITIONS} partitions",
            f"lastword topic create {TOPIC} --partitions {PARTITIONS} {settings}",
            "created",
        )

    def _write(self, users: Table, profiles: Sequence[Profile], title: str, expected: int) -> None:
        for profile in profiles:
            users.put(profile["userId"], profile)
        first = profiles[0]
        self.report(
            title, f"lastword put {TOPIC} {first['userId']} '{json.dumps(first)}'", f"{self._records(expected)} records"
        )

    def _compact(self, title: str, expected: int) -> None:
        compaction = compact_topic(self.connection, TOPIC, home=self.home)
        sizes = [(p.bytes_before, p.bytes_after) for p in compaction.partitions]
        on_disk = ""
        if all(before is not None and after is not None for before, after in sizes):
            on_disk = f", {sum(b or 0 for b, _ in sizes)} -> {sum(a or 0 for _, a in sizes)} bytes on disk"
        result = f"{self._records(expected)} records after {compaction.took_s:.1f} s{on_disk}"
        self.report(title, f"lastword topic compact {TOPIC}", result)

    def _show_versions(self) -> None:
        versions = {
            record.key.decode(): json.loads(record.value)["version"]
            for record in self._log()
            if record.key is not None and record.value is not None
        }
        expected = {f"user-{n}": {1: 3, 2: 2}.get(n, 1) for n in range(1, 11)}
        if versions != expected:
            raise LastwordError(
                f"the demo found the versions {versions} in {TOPIC} and expected {expected}: {_ANOTHER_WRITER}"
            )
        self.report("Who is left", f"lastword records {TOPIC}", "user-1 only v3, user-2 only v2, user-3 to user-10 v1")

    def _watch(self, users: Table) -> None:
        changes: queue.Queue[tuple[Record, float]] = queue.Queue()
        _, end = log_bounds(self.connection, TOPIC)
        started = threading.Event()

        def watcher() -> None:
            for batch in follow(self.connection, TOPIC, start=end):
                started.set()
                for record in batch:
                    changes.put((record, time.monotonic()))
                if background.is_stopping:
                    return

        background = BackgroundLoop("demo watcher", watcher)
        background.start()
        started.wait(timeout=10)
        users.put(LIVE_UPDATE["userId"], LIVE_UPDATE)
        acknowledged = time.monotonic()
        try:
            record, arrived = changes.get(timeout=10)
        except queue.Empty:
            raise LastwordError(
                f"the demo's watcher of {TOPIC} got no record for 10 s: see  lastword broker logs"
            ) from None
        finally:
            background.stop(5)
        name = json.loads(record.value or b"{}").get("name")
        delay_ms = max(0.0, (arrived - acknowledged) * 1000)
        self.report(
            "A watcher sees an update at once",
            f"lastword watch {TOPIC}",
            f"user-1 is {name} {delay_ms:.0f} ms after the acknowledgement",
        )

    def _delete(self, users: Table) -> None:
        users.delete("user-5")
        if users.get("user-5", "gone") != "gone":
            raise LastwordError(f"the demo deleted user-5 from {TOPIC}, but the key is still there: {_ANOTHER_WRITER}")
        self.report("Delete user-5 with a tombstone", f"lastword delete {TOPIC} user-5", f"{users.count()} users")
        self._compact("Compact: after delete.retention.ms and a second cleaning the tombstone itself is gone", 9)

    def _values_that_are_not_tombstones(self, users: Table) -> None:
        users.put("user-null", None)
        users.put("user-empty", "")
        if users.count() != 11:
            raise LastwordError(f"the demo counted {users.count()} keys in {TOPIC} and expected 11: {_ANOTHER_WRITER}")
        self.report(
            "JSON null and the empty string are values, not tombstones",
            f"lastword put {TOPIC} user-null null",
            "11 live keys",
        )

    def _partitions(self, users: Table) -> None:
        places = {}
        for key in ("test-a", "test-b", "test-c"):
            acks = [users.put(key, {"try": attempt}) for attempt in (1, 2)]
            if acks[0].partition != acks[1].partition:
                raise LastwordError(f"the demo wrote {key} twice, to two partitions of {TOPIC}: {_ANOTHER_WRITER}")
            places[key] = acks[0].partition
        self.report(
            "The same key always goes to the same partition",
            f"lastword put {TOPIC} test-a 1",
            ", ".join(f"{key} in {partition}" for key, partition in places.items()),
        )
        scan = scan_topic(self.connection, TOPIC)
        self.report(
            "How the keys spread",
            f"lastword topic describe {TOPIC} --scan",
            ", ".join(f"partition {p.partition}: {p.keys} keys in {p.records} records" for p in scan.partitions),
        )

    def _log(self) -> list[Record]:
        return [record for batch in read_log(self.connection, TOPIC) for record in batch]

    def _records(self, expected: int) -> int:
        records = len(self._log())
        if records != expected:
            raise LastwordError(
                f"the demo read {records} records from {TOPIC} and expected {expected}: {_ANOTHER_WRITER}"
            )
        return records
