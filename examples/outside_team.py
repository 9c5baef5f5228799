"""An outside team: reads new users, flags those on Linux, and publishes its counters in team_stats.

    python examples/outside_team.py SETTINGS

SETTINGS is the file that `lastword team add NAME` wrote. The program uses only kafka-python, nothing of lastword.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition

NAMES = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
}
lines = [line.partition("=") for line in Path(sys.argv[1]).read_text().splitlines()]
SETTINGS: dict[str, Any] = {NAMES[name]: value for name, _, value in lines}
SETTINGS["security_protocol"] = SETTINGS["security_protocol"].upper()
TEAM = SETTINGS["sasl_plain_username"]
STATS_EVERY_S = 5
# `malformed` counts records that are not users; `position` says which records are counted.
EMPTY: dict[str, Any] = {"team": TEAM, "processed": 0, "flagged": 0, "malformed": 0, "position": {}}


def restored() -> dict[str, Any]:
    """Our newest row of team_stats: the counters, and the position in new_users that they belong to."""
    consumer = KafkaConsumer(**SETTINGS)
    partitions = [TopicPartition("team_stats", number) for number in consumer.partitions_for_topic("team_stats")]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    row = dict(EMPTY, position={})
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                # The last record of a key is the newest, and a record without a value deletes the row.
                if record.key == TEAM.encode():
                    row = dict(EMPTY, position={}) if record.value is None else json.loads(record.value)
    consumer.close()
    if "position" not in row:
        sys.exit(f"{TEAM}: its row in team_stats was not written by this program: delete the row to start from zero")
    return row


class Team:
    """Shared by the members of the team: the counters, and the producer that publishes them."""

    def __init__(self) -> None:
        self.row = restored()
        self.producer = KafkaProducer(**SETTINGS, acks="all")
        self.lock = threading.Lock()
        self.published_at = time.monotonic()
        self.published = json.dumps(self.row)
        self.sent: list[Any] = []
        self.size, self.joined = 1, set[Member]()

    def take(self, records: Iterable[Any]) -> None:
        """Counts a batch of one member; skips records that our row already counts."""
        with self.lock:
            for record in records:
                if record.offset < self.row["position"].get(str(record.partition), 0):
                    continue
                self.judge(record.value)
                self.row["position"][str(record.partition)] = record.offset + 1

    def judge(self, value: bytes | None) -> None:
        try:
            user = json.loads(value or b"")
            email, agent = str(user["email"]), str(user["user_agent"])
        except (ValueError, TypeError, KeyError):
            self.row["malformed"] += 1
            return
        self.row["processed"] += 1
        if "Linux" in agent:
            self.row["flagged"] += 1
            action = {"customer": email, "type": "HIRE_CUSTOMER", "reason": "ON_LINUX", "team": TEAM}
            self.sent.append(self.producer.send("actions", json.dumps(action).encode()))

    def publish(self) -> None:
        """Counters and position are one record, so no crash can separate them."""
        with self.lock:
            row = json.dumps(self.row)
            is_early = len(self.joined) < self.size or time.monotonic() - self.published_at < STATS_EVERY_S
            if row == self.published or is_early:
                return
            # First the actions that the row counts. An error ends the program, which then continues from its last row.
            for action in self.sent:
                action.get(30)
            self.sent.clear()
            self.producer.send("team_stats", key=TEAM.encode(), value=row.encode()).get(30)
            self.published, self.published_at = row, time.monotonic()
            print(f"{TEAM}: {self.row['processed']} processed, {self.row['flagged']} flagged", flush=True)


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of the consumer group with the team's name; it continues at the position in the team's row."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.consumer = KafkaConsumer(
            **SETTINGS,
            group_id=TEAM,
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            # Expired records are skipped, existing ones are not.
            auto_offset_reset="earliest",
        )
        self.consumer.subscribe(["new_users"], listener=self)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        for partition in assigned:
            # Not at the offset that the group committed: it may be ahead of our row.
            if (offset := self.team.row["position"].get(str(partition.partition))) is not None:
                self.consumer.seek(partition, offset)
            else:
                self.consumer.seek_to_beginning(partition)
        # The next row comes from all members that have joined.
        self.team.joined.add(self)
        self.team.published_at = time.monotonic()

    def run(self, after_batch: Callable[[], None] = lambda: None) -> None:
        while True:
            for records in self.consumer.poll(timeout_ms=500, max_records=500).values():
                self.team.take(records)
                # Only to show our lag to others.
                self.consumer.commit()
                after_batch()
            self.team.publish()


def main() -> None:
    team = Team()
    print(f"{TEAM}: continues at {team.row['processed']} processed", flush=True)
    second: list[threading.Thread] = []

    def add_second() -> None:
        """Lets a second member join after the first flagged user."""
        if not second and team.row["flagged"]:
            team.size = 2
            second.append(threading.Thread(target=run_second, daemon=True))
            second[0].start()

    def run_second() -> None:
        try:
            Member(team).run()
        finally:
            # A failed member must not keep its partitions while the other works: end the whole program.
            os._exit(1)

    Member(team).run(after_batch=add_second)


if __name__ == "__main__":
    main()
