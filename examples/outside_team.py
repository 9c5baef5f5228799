"""An outside team: reads new users, flags those on Linux, and keeps its counters where everyone can see them.

    python examples/outside_team.py SETTINGS

SETTINGS is the file that `lastword team add NAME` has written. Only kafka-python is used, nothing of lastword.
"""

import json
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


def restored() -> dict[str, Any]:
    """Our newest row of team_stats: the counters, and the position in new_users that they belong to."""
    consumer = KafkaConsumer(**SETTINGS)
    partitions = [TopicPartition("team_stats", number) for number in consumer.partitions_for_topic("team_stats")]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    row: dict[str, Any] = {"team": TEAM, "processed": 0, "flagged": 0, "position": {}}
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                # The last one of a key is the newest. None: the row was deleted.
                if record.key == TEAM.encode() and record.value is not None:
                    row = json.loads(record.value)
    consumer.close()
    return row


class Team:
    """What the members of the team share: the counters, and the one producer that publishes them."""

    def __init__(self) -> None:
        self.row = restored()
        self.producer = KafkaProducer(**SETTINGS, acks="all")
        self.turn = threading.Lock()
        self.published_at = time.monotonic()

    def take(self, records: Iterable[Any]) -> None:
        """A batch of one member: what was counted before, as our row says, is passed over."""
        with self.turn:
            for record in records:
                if record.offset < self.row["position"].get(str(record.partition), 0):
                    continue
                user = json.loads(record.value)
                self.row["processed"] += 1
                if "Linux" in user["user_agent"]:
                    self.row["flagged"] += 1
                    action = {"customer": user["email"], "type": "HIRE_CUSTOMER", "reason": "ON_LINUX", "team": TEAM}
                    self.producer.send("actions", json.dumps(action).encode())
                self.row["position"][str(record.partition)] = record.offset + 1
            if time.monotonic() - self.published_at > STATS_EVERY_S:
                self.publish()

    def publish(self) -> None:
        """Counters and position are one record: there is no instant at which a crash could part them."""
        self.producer.flush()
        self.producer.send("team_stats", key=TEAM.encode(), value=json.dumps(self.row).encode()).get(30)
        self.published_at = time.monotonic()
        print(f"{TEAM}: {self.row['processed']} processed, {self.row['flagged']} flagged", flush=True)


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of the group with the team's name; it goes on where the team's row says."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.consumer = KafkaConsumer(**SETTINGS, group_id=TEAM, enable_auto_commit=False, session_timeout_ms=10_000)
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
        self.team.published_at = time.monotonic()

    def run(self, then: Callable[[], None] = lambda: None) -> None:
        while True:
            for records in self.consumer.poll(timeout_ms=500, max_records=500).values():
                self.team.take(records)
                # For those who look at our lag.
                self.consumer.commit()
                then()


def main() -> None:
    team = Team()
    print(f"{TEAM}: goes on at {team.row['processed']} processed", flush=True)
    helper: list[threading.Thread] = []

    def share() -> None:
        """With the first records there is work to share: a second member joins."""
        if not helper:
            helper.append(threading.Thread(target=lambda: Member(team).run(), daemon=True))
            helper[0].start()

    Member(team).run(then=share)


if __name__ == "__main__":
    main()
