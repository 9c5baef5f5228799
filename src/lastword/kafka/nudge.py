"""The nudge: an aborted transaction that makes an idle topic cleanable, and the sign that the cleaner came by.

A segment rolls only on an append, and the cleaner never touches the segment that is appended to: without a nudge
the newest records of an idle topic are never compacted. A nudge is one transaction with two tombstones for each
partition under a reserved key, and it is aborted, so readers of committed data never see them:

    witness   carries the newest timestamp already there, so it makes no segment look younger than it is, and lands
              beside the records to be cleaned. Aborted, it goes with the first cleaning, whatever else there is to
              remove: when it has gone, the cleaner has been here.
    roll      carries a timestamp past segment.ms after the newest one there, so it opens a new segment. (Kafka rolls
              by the timestamps of records, not by its clock, where records bring their own.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.kafka.connection import FENCED, Connection, translated
from lastword.kafka.live_settings import SettingNow
from lastword.kafka.messages import NO_GROUP

NUDGE_KEY = b"__lastword_nudge"

_NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]

_TRANSACTION_TIMEOUT_MS = 10_000
_PATIENCE_S = 30
# How far our clock may be from the broker's when the topic bounds the timestamps it takes.
_CLOCK_SLACK_MS = 1_000


@dataclass(frozen=True, kw_only=True)
class RollRule:
    """What decides, for one topic, whether an append opens a new segment."""

    segment_ms: int
    broker_stamps: bool
    stamps_after_max_ms: int
    stamps_before_max_ms: int

    def stamps_ms(self, newest_ms: int, now_ms: int) -> tuple[int, int]:
        """The timestamps of witness and roll, within what the topic takes."""
        oldest_taken = now_ms - self.stamps_before_max_ms + _CLOCK_SLACK_MS
        latest_taken = now_ms + self.stamps_after_max_ms - _CLOCK_SLACK_MS
        # Never 0: librdkafka reads it as "now".
        witness = max(newest_ms, oldest_taken, 1)
        return witness, max(now_ms, min(newest_ms + self.segment_ms + 1, latest_taken))


def roll_rule(settings: Mapping[str, SettingNow], *, segment_ms: int) -> RollRule:
    """The rule for a topic whose segment.ms is, or is about to be, at most `segment_ms`."""

    def bound(name: str) -> int:
        # Brokers before 3.6 know neither bound.
        return int(settings[name].value) if name in settings else 2**63 - 1

    return RollRule(
        segment_ms=min(int(settings["segment.ms"].value), segment_ms),
        broker_stamps=settings["message.timestamp.type"].value == "LogAppendTime",
        stamps_after_max_ms=bound("message.timestamp.after.max.ms"),
        stamps_before_max_ms=bound("message.timestamp.before.max.ms"),
    )


def transactional_id(topic: str) -> str:
    return f"lastword-compact-{topic}"


@contextmanager
def nudger(connection: Connection, topic: str) -> Iterator[Producer]:
    """A producer whose transactional id is the topic's: making it ends whatever a predecessor left open."""
    with _explained(topic):
        producer = connection.producer(
            transactional_id=transactional_id(topic), transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        producer.init_transactions(_PATIENCE_S)
    try:
        yield producer
    finally:
        with suppress(KafkaException):
            producer.close()


def nudge(
    producer: Producer,
    admin: AdminClient,
    topic: str,
    *,
    partitions: list[int],
    rule: RollRule,
    before_abort: Callable[[], None],
) -> dict[int, int]:
    """Rolls the newest segment of each partition; for each the offset of its witness."""
    with _explained(topic):
        newest_ms = _newest_timestamps_ms(admin, topic, partitions)
        stamps = {p: rule.stamps_ms(newest_ms[p], time.time_ns() // 1_000_000) for p in partitions}
        producer.begin_transaction()
        try:
            witnesses = _append(producer, topic, {p: witness for p, (witness, _) in stamps.items()})
            if rule.broker_stamps:
                # The broker stamps both with its clock, so only time can bring the roll past segment.ms.
                time.sleep((rule.segment_ms + 100) / 1000)
            _append(producer, topic, {p: roll for p, (_, roll) in stamps.items()})
            before_abort()
        finally:
            producer.abort_transaction(_PATIENCE_S)
    return witnesses


def gone(consumer: Consumer, topic: str, offsets: Mapping[int, int]) -> set[int]:
    """The partitions whose record at the given offset is no longer there: one small fetch for each."""
    if not offsets:
        return set()
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
    pending, found = set(offsets), set()
    give_up_at = time.monotonic() + _PATIENCE_S
    while pending:
        message = consumer.poll(0.5)
        if message is None:
            if time.monotonic() > give_up_at:
                raise ClusterUnreachable(
                    f"reading {topic}: partitions {sorted(pending)} do not answer: is the cluster up?  "
                    "lastword broker status"
                )
            continue
        partition = _answering(message, topic)
        if partition is None or partition not in pending:
            continue
        pending.discard(partition)
        # Not paused: a pause would outlive the next assignment.
        consumer.incremental_unassign([TopicPartition(topic, partition)])
        if message.error() is not None or message.offset() != offsets[partition]:
            found.add(partition)
    return found


@contextmanager
def peeker(connection: Connection) -> Iterator[Consumer]:
    """A consumer for `gone`: it sees aborted records too, and fetches as little as the broker can give."""
    consumer = connection.consumer(
        isolation_level="read_uncommitted",
        enable_partition_eof=True,
        fetch_message_max_bytes=1_000,
        queued_min_messages=1,
        # The default rests for a second as soon as that one record waits.
        fetch_queue_backoff_ms=1,
    )
    try:
        yield consumer
    finally:
        with suppress(KafkaException):
            consumer.close()


def _answering(message: Any, topic: str) -> int | None:
    """The partition that this message speaks for; None for an error that the client will retry."""
    error = message.error()
    # No record at or after the offset, or a log that starts after it: both mean that the record is gone.
    if error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
        return int(message.partition())
    if error.retriable() or error.code() in (KafkaError._TRANSPORT, NO_GROUP):
        return None
    raise translated(error, f"reading {topic}")


def _append(producer: Producer, topic: str, stamps_ms: Mapping[int, int]) -> dict[int, int]:
    """One tombstone for each partition, in a batch of its own; for each the offset it got."""
    offsets: dict[int, int] = {}
    refusals: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is None:
            offsets[message.partition()] = message.offset()
        else:
            refusals.append(error)

    for partition, stamp in stamps_ms.items():
        producer.produce(topic, key=NUDGE_KEY, partition=partition, timestamp=stamp, on_delivery=delivered)
    producer.flush(_PATIENCE_S)
    if refusals:
        raise KafkaException(refusals[0])
    if len(offsets) < len(stamps_ms):
        raise ClusterUnreachable(f"nudging {topic}: no acknowledgement within {_PATIENCE_S} s: is the cluster up?")
    return offsets


def _newest_timestamps_ms(admin: AdminClient, topic: str, partitions: list[int]) -> dict[int, int]:
    # Asked of the broker and not taken from the records read: an earlier nudge may be newer, and readers don't see it.
    asked = {TopicPartition(topic, partition): _NEWEST for partition in partitions}
    answers = admin.list_offsets(asked, request_timeout=_PATIENCE_S)
    return {tp.partition: answer.result().timestamp for tp, answer in answers.items()}


@contextmanager
def _explained(topic: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as failure:
        if failure.args[0].code() in FENCED:
            raise LastwordError(f"{topic} is being compacted from another machine too: wait for it") from None
        raise translated(failure, f"nudging {topic}") from None
