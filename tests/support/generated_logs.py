"""Generated logs on a real broker, and their committed records.

A log is a list of acts: one record written plainly, or a transaction of several that is committed, aborted or left
open. Writing it gives the committed records as the brokers acknowledged them: the input of the reference fold.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from confluent_kafka import Message, Producer
from hypothesis import strategies as st

from lastword.core.record import Headers, Record
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from support.compacted_logs import wait_for_markers
from support.generated_headers import headers

PARTITIONS = 3


@dataclass(frozen=True, kw_only=True)
class Put:
    key: bytes | None
    value: bytes | None
    partition: int
    # For a writer None is the same as no headers.
    headers: Headers | None = None


@dataclass(frozen=True, kw_only=True)
class Act:
    puts: tuple[Put, ...]
    ending: Literal["plain", "commit", "abort"]


# Few keys, so that keys repeat; any partition for any key, so that some keys are in two.
puts = st.builds(
    Put,
    key=st.sampled_from([b"a", b"b", b"c", b"\x00\xff", b"user-1"]),
    value=st.none() | st.sampled_from([b"", b"null", b"1", b'{"x":1}', b"\xff"]),
    partition=st.integers(0, PARTITIONS - 1),
    headers=st.none() | headers,
)
acts = st.builds(
    Act, puts=st.lists(puts, min_size=1, max_size=4).map(tuple), ending=st.sampled_from(["plain", "commit", "abort"])
)
logs = st.lists(acts, max_size=12)


@contextmanager
def fresh_topic(connection: Connection) -> Iterator[str]:
    """A topic for one generated log, deleted at the end of the block."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    create_topic(connection, name, partitions=PARTITIONS)
    try:
        yield name
    finally:
        delete_topic(connection, name)


def write_log(connection: Connection, topic: str, log: Sequence[Act]) -> list[Record]:
    """Writes the acts in order and returns the records that a reader of committed data must see."""
    committed: list[Record] = []
    plain = connection.producer(linger_ms=0)
    transactional: Producer | None = None
    for act in log:
        producer = plain
        if act.ending != "plain":
            if transactional is None:
                transactional = connection.producer(linger_ms=0, transactional_id=f"test-{uuid.uuid4().hex}")
                transactional.init_transactions(30)
            producer = transactional
            producer.begin_transaction()
        written = _written(producer, topic, act.puts)
        if act.ending == "commit":
            producer.commit_transaction(30)
        elif act.ending == "abort":
            producer.abort_transaction(30)
        if act.ending != "abort":
            committed += written
    if transactional is not None:
        wait_for_markers(connection, topic)
    return committed


def leave_open(connection: Connection, topic: str, puts: Sequence[Put]) -> Producer:
    """A transaction with these records that stays open; keep the producer until the end of the test."""
    producer = connection.producer(linger_ms=0, transactional_id=f"test-{uuid.uuid4().hex}")
    producer.init_transactions(30)
    producer.begin_transaction()
    _written(producer, topic, puts)
    return producer


def _written(producer: Producer, topic: str, puts: Sequence[Put]) -> list[Record]:
    acknowledged: list[tuple[Put, Message]] = []

    def on_delivery(put: Put, error: object, message: Message) -> None:
        assert error is None, error
        acknowledged.append((put, message))

    for put in puts:
        producer.produce(
            topic,
            key=put.key,
            value=put.value,
            partition=put.partition,
            headers=None if put.headers is None else list(put.headers),
            on_delivery=partial(on_delivery, put),
        )
    assert producer.flush(30) == 0
    assert len(acknowledged) == len(puts)
    return [
        Record(
            message.key(),
            message.value(),
            message.partition() or 0,
            message.offset() or 0,
            message.timestamp()[1],
            put.headers or (),
        )
        for put, message in acknowledged
    ]
