"""The alternative without Spark: the fifteen rules as a plain loop, with kafka-python or with confluent-kafka.

    PYTHON rules_loop.py kafka-python|confluent-kafka HOST:PORT USERS ACTIONS STATS RECORDS

An ordinary program, in a separate environment, that imports nothing from lastword. It reads RECORDS users, writes an
action for each match, and at the end the counters of each team. There are no transactions: after a crash nobody knows
what was written. The clock runs from the assignment to the last acknowledgement.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

User = Mapping[str, Any]
Send = Callable[[str, bytes | None, bytes], None]

_FETCH_BYTES = 4 * 1024 * 1024
_AT_ONCE = 10_000
_PATIENCE_S = 60

_FINANCE = ("Bank", "Financ", "Insur", "Invest", "Account", "Capital")
_TECH = ("Computer", "Internet", "Semiconductor", "Telecom", "Wireless")
_EXPLORER = ("MSIE", "Trident")
_HEALTH = ("Health", "Hospital", "Medical", "Pharma", "Biotech", "Veterinary")

# Of each team: what its action says, and when it is due.
TEAMS: tuple[tuple[str, str, str, Callable[[User], bool]], ...] = (
    ("team-1", "CONTACT_CUSTOMER", "LEGACY_EMAIL_PROVIDER", lambda u: "hotmail" in u["email"]),
    ("team-2", "CREDIT_CARD_VERIFICATION", "AMEX_CARD", lambda u: u["credit_card_number"].startswith("37")),
    ("team-3", "SALES_LEAD", "FINANCIAL_SECTOR", lambda u: any(word in u["industry"] for word in _FINANCE)),
    ("team-4", "ACQUISITION_TARGET", "TECH_COMPANY", lambda u: any(word in u["industry"] for word in _TECH)),
    ("team-5", "CONTACT_CUSTOMER", "HEALTHCARE_COMPLIANCE", lambda u: any(word in u["industry"] for word in _HEALTH)),
    ("team-6", "HIRE_CUSTOMER", "IS_ENGINEER", lambda u: u["profession"] == "engineer"),
    ("team-7", "CONTACT_CUSTOMER", "VIP_USER", lambda u: u["premium"] and u["credit"] > 10),
    ("team-8", "CONTACT_CUSTOMER", "CRITICAL_DEBT", lambda u: u["credit"] < -15),
    ("team-9", "CONTACT_CUSTOMER", "APAC_EXPANSION", lambda u: u["time_zone"].startswith("Asia/")),
    ("team-10", "CONTACT_CUSTOMER", "LEGACY_BROWSER", lambda u: any(word in u["user_agent"] for word in _EXPLORER)),
    ("team-11", "TRIGGER_GDPR_COMPLIANCE", "IN_EUROPE", lambda u: u["time_zone"].startswith("Europe/")),
    ("team-12", "HIRE_CUSTOMER", "TECH_PROFESSIONAL", lambda u: u["field"] in ("IT", "Technology")),
    (
        "team-13",
        "CONTACT_CUSTOMER",
        "INVALID_AVATAR",
        lambda u: "example.org" in u["avatar"] or not u["avatar"].startswith("https://"),
    ),
    ("team-14", "BAN_CUSTOMER", "SUSPICIOUS_NAME", lambda u: u["name"] == "John Doe"),
    ("team-15", "CONTACT_CUSTOMER", "UPGRADE_FREE", lambda u: u["pack"] == "free"),
)


def matches_of(user: User) -> list[str]:
    """The teams whose rule holds."""
    return [team for team, _, _, holds in TEAMS if holds(user)]


def judge_all(values: Iterable[bytes], send: Send, actions: str, stats: str) -> None:
    """Sends an action for each match, then a row for each team."""
    flagged = {team: 0 for team, _, _, _ in TEAMS}
    processed = 0
    for value in values:
        user = json.loads(value)
        processed += 1
        for team, kind, reason, holds in TEAMS:
            if holds(user):
                flagged[team] += 1
                action = {"customer": user["email"], "type": kind, "reason": reason, "team": team}
                send(actions, None, json.dumps(action).encode())
    for team, count in flagged.items():
        row = {"team": team, "processed": processed, "flagged": count}
        send(stats, team.encode(), json.dumps(row).encode())


def with_kafka_python(servers: str, users: str, actions: str, stats: str, records: int) -> float:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        enable_auto_commit=False,
        fetch_max_bytes=4 * _FETCH_BYTES,
        max_partition_fetch_bytes=_FETCH_BYTES,
        max_poll_records=_AT_ONCE,
    )
    producer = KafkaProducer(bootstrap_servers=servers, compression_type="lz4", linger_ms=20, batch_size=256 * 1024)
    partitions = [TopicPartition(users, partition) for partition in consumer.partitions_for_topic(users)]

    def values() -> Iterator[bytes]:
        left = records
        while left > 0:
            polled = consumer.poll(timeout_ms=_PATIENCE_S * 1000)
            if not polled:
                sys.exit(f"nothing came for {_PATIENCE_S} s: {left} users are missing")
            for taken in polled.values():
                left -= len(taken)
                yield from (record.value for record in taken)

    began = time.perf_counter()
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    judge_all(values(), lambda topic, key, value: producer.send(topic, value, key), actions, stats)
    producer.flush()
    return time.perf_counter() - began


def with_confluent(servers: str, users: str, actions: str, stats: str, records: int) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "rules-loop",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": _FETCH_BYTES,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "lz4",
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    partitions = consumer.list_topics(users, timeout=10).topics[users].partitions

    def values() -> Iterator[bytes]:
        left = records
        while left > 0:
            # Not consume(_AT_ONCE, 1.0) alone: at the end of the log it would wait out its second.
            head = consumer.poll(_PATIENCE_S)
            if head is None:
                sys.exit(f"nothing came for {_PATIENCE_S} s: {left} users are missing")
            taken = [head, *consumer.consume(_AT_ONCE - 1, 0)]
            left -= len(taken)
            yield from (message.value() or b"" for message in taken)

    def send(topic: str, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                producer.produce(topic, value, key)
                return
            except BufferError:
                producer.poll(0.05)

    began = time.perf_counter()
    consumer.assign([TopicPartition(users, partition, OFFSET_BEGINNING) for partition in partitions])
    judge_all(values(), send, actions, stats)
    if producer.flush(_PATIENCE_S):
        sys.exit("not every action was acknowledged")
    return time.perf_counter() - began


if __name__ == "__main__":
    _, client, servers, users, actions, stats, records = sys.argv
    loop = {"kafka-python": with_kafka_python, "confluent-kafka": with_confluent}[client]
    print(json.dumps({"seconds": loop(servers, users, actions, stats, int(records))}))
