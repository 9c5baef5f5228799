"""An outside team: reads new users, flags those on Linux, and keeps its counters where everyone can see them.

    python examples/outside_team.py SETTINGS

SETTINGS is the file that `lastword team add NAME` has written. Only kafka-python is used, nothing of lastword.
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
# `malformed` counts users that are none; `position` says which users are counted.
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
                # The last one of a key is the newest, and one without a value deletes the row.
                if record.key == TEAM.encode():
                    row = dict(EMPTY, position={}) if record.value is None else json.loads(record.value)
    consumer.close()
    if "position" not in row:
        sys.exit(f"{TEAM}: its row in team_stats is not of this program: delete it to count anew")
    return row


class Team:
    """What the members of the team share: the counters, and the one producer that publishes them."""

    def __init__(self) -> None:
        self.row = restored()
        self.producer = KafkaProducer(**SETTINGS, acks="all")
        self.turn = threading.Lock()
        self.published_at = time.monotonic()
        self.published = json.dumps(self.row)
        self.sent: list[Any] = []
        self.wanted, self.joined = 1, set[Member]()

    def take(self, records: Iterable[Any]) -> None:
        """A batch of one member: what was counted before, as our row says, is passed over."""
        with self.turn:
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
        """Counters and position are one record: there is no instant at which a crash could part them."""
        with self.turn:
            row = json.dumps(self.row)
            is_early = len(self.joined) < self.wanted or time.monotonic() - self.published_at < STATS_EVERY_S
            if row == self.published or is_early:
                return
            # First the actions that it counts: an error here ends the program, which then goes on at its last row.
            for action in self.sent:
                action.get(30)
            self.sent.clear()
            self.producer.send("team_stats", key=TEAM.encode(), value=row.encode()).get(30)
            self.published, self.published_at = row, time.monotonic()
            print(f"{TEAM}: {self.row['processed']} processed, {self.row['flagged']} flagged", flush=True)


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of the group with the team's name; it goes on where the team's row says."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.consumer = KafkaConsumer(
            **SETTINGS,
            group_id=TEAM,
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            # What has expired is passed over, and what is there is not.
            auto_offset_reset="earliest",
        )
        self.consumer.subscribe(["new_users"], listener=self)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        for partition in assigned:
            # Never where the group has committed: that may be ahead of our row.
            if (offset := self.team.row["position"].get(str(partition.partition))) is not None:
                self.consumer.seek(partition, offset)
            else:
                self.consumer.seek_to_beginning(partition)
        # The next row is of the team as it is now.
        self.team.joined.add(self)
        self.team.published_at = time.monotonic()

    def run(self, then: Callable[[], None] = lambda: None) -> None:
        while True:
            for records in self.consumer.poll(timeout_ms=500, max_records=500).values():
                self.team.take(records)
                # For those who look at our lag.
                self.consumer.commit()
                then()
            self.team.publish()


def main() -> None:
    team = Team()
    print(f"{TEAM}: goes on at {team.row['processed']} processed", flush=True)
    helper: list[threading.Thread] = []

    def share() -> None:
        """With the first user that is flagged there is work to share: a second member joins."""
        if not helper and team.row["flagged"]:
            team.wanted = 2
            helper.append(threading.Thread(target=help_out, daemon=True))
            helper[0].start()

    def help_out() -> None:
        try:
            Member(team).run()
        finally:
            # One that fails must not keep its users waiting while the other works on.
            os._exit(1)

    Member(team).run(then=share)


if __name__ == "__main__":
    main()
