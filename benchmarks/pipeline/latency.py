"""A process that measures the time from a user to its actions, and to the counters over HTTP, beside the pipeline.

    python -m benchmarks.pipeline.latency HOST:PORT USERS ACTIONS HTTP_PORT PER_SECOND SECONDS

`lastword demo users` writes users at a steady rate. The time of a user starts with the timestamp of its record, which
the client sets when it gets the record. One time ends when a reader of committed data has an action of this user. The
other ends when a row of the table stats, asked for over HTTP again and again, has counted the user: the n-th user when
n users are counted. All times are by the machine's clock.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from statistics import quantiles

from benchmarks.http.freshness import KeptAlive
from benchmarks.pipeline.topics import users_command
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import follow, log_bounds, read_log

STATS = "stats"
_LOOK_EVERY_S = 0.01
_PATIENCE_S = 180

# The partition and offset of a user.
Source = tuple[int, int]


class ActionReader(threading.Thread):
    """A thread that notes when the first action of each user could be read."""

    def __init__(self, connection: Connection, topic: str) -> None:
        super().__init__(daemon=True)
        _, self._start = log_bounds(connection, topic)
        self._followed = follow(connection, topic, start=self._start)
        self._ended = threading.Event()
        self.seen_ms: dict[Source, float] = {}

    def run(self) -> None:
        for records in self._followed:
            now = time.time() * 1000
            for record in records:
                self.seen_ms.setdefault(source_of(record), now)
            if self._ended.is_set():
                return

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._followed.close()


class CounterReader(threading.Thread):
    """A thread that notes when the table has counted how many users."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = KeptAlive(port)
        self._ended = threading.Event()
        self.seen_ms: list[tuple[int, float]] = []
        self.before = self._count()

    def run(self) -> None:
        last = self.before
        while not self._ended.wait(_LOOK_EVERY_S):
            if (count := self._count()) > last:
                last = count
                self.seen_ms.append((count - self.before, time.time() * 1000))

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._client.close()

    def _count(self) -> int:
        """0 if there is no row yet."""
        body = self._client.get(f"/tables/{STATS}/rows/team-1").partition(b"\r\n\r\n")[2]
        return int(json.loads(body).get("value", {}).get("processed", 0))


def source_of(action: Record) -> Source:
    """The partition and offset of the user that an action is about, from its header."""
    _, partition, offset = (dict(action.headers)["source"] or b"").rsplit(b"/", 2)
    return int(partition), int(offset)


def to_actions(made_ms: Mapping[Source, int], seen_ms: Mapping[Source, float]) -> list[float]:
    return [seen - made_ms[source] for source, seen in seen_ms.items() if source in made_ms]


def to_counters(made_ms: Sequence[int], counted: Sequence[tuple[int, float]]) -> list[float]:
    """For each user the time until the count includes it: the n-th user when n users are counted."""
    waited: list[float] = []
    for count, seen in counted:
        waited += [seen - made for made in sorted(made_ms)[len(waited) : count]]
    return waited


def measured(connection: Connection, users: str, actions: str, port: int, pace: tuple[int, int]) -> dict[str, float]:
    rate, seconds = pace
    _, before = log_bounds(connection, users)
    action_reader, counter_reader = ActionReader(connection, actions), CounterReader(port)
    action_reader.start()
    counter_reader.start()
    options = ("--rate", str(rate), "--count", str(rate * seconds))
    subprocess.run(users_command(connection, users, *options), check=True, stdout=subprocess.DEVNULL)
    give_up_at = time.monotonic() + _PATIENCE_S
    while not counter_reader.seen_ms or counter_reader.seen_ms[-1][0] < rate * seconds:
        if time.monotonic() > give_up_at:
            sys.exit(f"not every user was counted within {_PATIENCE_S} s")
        time.sleep(0.1)
    action_reader.end()
    counter_reader.end()
    made_ms = _made_ms(connection, users, before)
    waited_ms = {
        "action": to_actions(made_ms, action_reader.seen_ms),
        STATS: to_counters([*made_ms.values()], counter_reader.seen_ms),
    }
    cuts = {what: quantiles(waited, n=100, method="inclusive") for what, waited in waited_ms.items()}
    return {f"{what}, p{cut}": cuts[what][cut - 1] for what in waited_ms for cut in (50, 99)}


def _made_ms(connection: Connection, users: str, start: Position) -> dict[Source, int]:
    records = (record for batch in read_log(connection, users, start=start) for record in batch)
    return {(record.partition, record.offset): record.timestamp for record in records}


if __name__ == "__main__":
    _, servers, users, actions, port, rate, seconds = sys.argv
    connection = Connection(bootstrap_servers=servers)
    print(json.dumps(measured(connection, users, actions, int(port), (int(rate), int(seconds)))))
