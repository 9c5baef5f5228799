"""How long a user takes to its actions, and to the counters over HTTP, as a process of its own beside the pipeline.

    python -m benchmarks.pipeline.latency HOST:PORT USERS ACTIONS HTTP_PORT PER_SECOND SECONDS

`lastword demo users` writes them at a pace. A user's time begins with the timestamp of its record, which the client
sets when the record is handed to it. It ends when a reader of committed data has an action of this user; and when a row
of the table stats, asked for over HTTP again and again, has counted it: the n-th user when n users are counted. All of
it is by the machine's clock.
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
from benchmarks.pipeline.topics import writing
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import follow, log_bounds, read_log

STATS = "stats"
_LOOK_EVERY_S = 0.01
_PATIENCE_S = 180

Place = tuple[int, int]


class Actions(threading.Thread):
    """Of each user the moment at which an action of his could be read first; in a thread, from now on."""

    def __init__(self, connection: Connection, topic: str) -> None:
        super().__init__(daemon=True)
        _, self._start = log_bounds(connection, topic)
        self._followed = follow(connection, topic, start=self._start)
        self._ended = threading.Event()
        self.seen_ms: dict[Place, float] = {}

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


class Counted(threading.Thread):
    """How many users the table has counted, and since when; in a thread, from now on."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._asking = KeptAlive(port)
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
        self._asking.close()

    def _count(self) -> int:
        """0 while there is no row."""
        body = self._asking.get(f"/tables/{STATS}/rows/team-1").partition(b"\r\n\r\n")[2]
        return int(json.loads(body).get("value", {}).get("processed", 0))


def source_of(action: Record) -> Place:
    """The place of the user that an action is about, as its header says."""
    _, partition, offset = (dict(action.headers)["source"] or b"").rsplit(b"/", 2)
    return int(partition), int(offset)


def to_actions(made_ms: Mapping[Place, int], seen_ms: Mapping[Place, float]) -> list[float]:
    return [seen - made_ms[place] for place, seen in seen_ms.items() if place in made_ms]


def to_counters(made_ms: Sequence[int], counted: Sequence[tuple[int, float]]) -> list[float]:
    """Of each user the time until as many are counted as were made up to it."""
    waited: list[float] = []
    for count, seen in counted:
        waited += [seen - made for made in sorted(made_ms)[len(waited) : count]]
    return waited


def measured(connection: Connection, users: str, actions: str, port: int, pace: tuple[int, int]) -> dict[str, float]:
    rate, seconds = pace
    _, before = log_bounds(connection, users)
    seen, counted = Actions(connection, actions), Counted(port)
    seen.start()
    counted.start()
    words = ("--rate", str(rate), "--count", str(rate * seconds))
    subprocess.run(writing(connection, users, *words), check=True, stdout=subprocess.DEVNULL)
    give_up_at = time.monotonic() + _PATIENCE_S
    while not counted.seen_ms or counted.seen_ms[-1][0] < rate * seconds:
        if time.monotonic() > give_up_at:
            sys.exit(f"not every user was counted within {_PATIENCE_S} s")
        time.sleep(0.1)
    seen.end()
    counted.end()
    made_ms = _made_ms(connection, users, before)
    found = {"action": to_actions(made_ms, seen.seen_ms), STATS: to_counters([*made_ms.values()], counted.seen_ms)}
    cuts = {what: quantiles(waited, n=100, method="inclusive") for what, waited in found.items()}
    return {f"{what}, p{cut}": cuts[what][cut - 1] for what in found for cut in (50, 99)}


def _made_ms(connection: Connection, users: str, start: Position) -> dict[Place, int]:
    records = (record for batch in read_log(connection, users, start=start) for record in batch)
    return {(record.partition, record.offset): record.timestamp for record in records}


if __name__ == "__main__":
    _, servers, users, actions, port, rate, seconds = sys.argv
    connection = Connection(bootstrap_servers=servers)
    print(json.dumps(measured(connection, users, actions, int(port), (int(rate), int(seconds)))))
