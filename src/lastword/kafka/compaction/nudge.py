"""The nudge: an aborted transaction that makes an idle topic cleanable, and shows when the cleaner has passed.

A segment rolls only on an append, and the cleaner never touches the segment that is appended to: without a nudge
the newest records of an idle topic are never compacted. A nudge is one transaction, which is aborted:

    witness   a tombstone under a reserved key, for each partition. Its timestamp is as old as the topic takes, so the
              witness opens no segment and makes none look younger. The first cleaning removes it, because it is
              aborted: when the witness is gone, the cleaner has passed.
    marker    Kafka's own record of the abort, which no reader sees. The marker carries the broker's clock. So it opens
              a new segment if the first timestamp of the old one is segment.ms or more in the past.

Kafka's rule (LogSegment.shouldRoll): an append opens a new segment if its newest timestamp minus the timestamp of the
segment's first batch exceeds segment.ms minus the segment's jitter. The jitter was drawn when the segment was made and
only makes it roll earlier, so segment.jitter.ms can stay as it is.

A marker can't roll a segment that begins in the future. There a third record helps:

    roll      a tombstone stamped past segment.ms after the newest timestamp. It is the first record of the new segment
              and stays there: readers of uncommitted data see it until a later compaction (see `cleaner_wait`).

A marker can be refused. The leader stamps the marker first and checks its timestamp afterwards, as for any record: if
message.timestamp.before.max.ms is 0, one millisecond between the two is too much. The coordinator then gives up without
an answer to us (IllegalStateException in the broker's log). Until the bound is raised and that broker restarts, the
transaction stays open, holds back readers of committed data, and no other transaction begins under its id. So a topic
is nudged only while it takes timestamps of LEAST_PAST_MS before now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lastword.core.clock import now_ms
from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.record import NUDGE_KEY
from lastword.kafka.client.admin_types import OffsetSpec
from lastword.kafka.client.client_errors import FENCED, translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import SettingNow
from lastword.kafka.client.messages import NO_GROUP

_NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]

# The least value of the settings of PAST_BOUNDS while a topic is nudged: no broker stalls for that long.
LEAST_PAST_MS = 600_000
# Brokers before 3.6 know only the second name, brokers since 4.0 only the first.
PAST_BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms")

# The broker ends a transaction that is open for longer. To the nudger this looks like another machine's work.
_TRANSACTION_TIMEOUT_MS = 30_000
_PATIENCE_S = 30
# The client's errors for a transaction that makes no progress: the cluster is away, or the coordinator is stuck.
_STANDSTILL = (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError.CONCURRENT_TRANSACTIONS)
# How long a cluster may take to show that it is up.
_SIGN_OF_LIFE_S = 5
# How far our clock may be from the broker's when the topic bounds the timestamps it takes.
_CLOCK_SLACK_MS = 1_000
# A record that was just young enough when it was stamped must not be too old when it arrives.
_DELIVERY_SLACK_MS = 60_000
# The longest wait for a newest timestamp that is ahead of our clock.
_AHEAD_MS = 10_000
# Clocks of one machine read at two places may differ by some milliseconds.
_MARGIN_MS = 100


@dataclass(frozen=True, kw_only=True)
class RollRule:
    """What decides, for one topic, whether an append opens a new segment."""

    segment_ms: int
    broker_stamps: bool
    stamps_after_max_ms: int
    stamps_before_max_ms: int

    def witness_ms(self, at_ms: int) -> int:
        """The oldest timestamp that the topic takes."""
        # Never 0: librdkafka reads it as "now".
        return max(1, at_ms - self.stamps_before_max_ms + _DELIVERY_SLACK_MS)

    def roll_ms(self, newest_ms: int, at_ms: int) -> int:
        """A timestamp that opens a new segment, or the latest one that the topic takes."""
        latest_taken = at_ms + self.stamps_after_max_ms - _CLOCK_SLACK_MS
        return max(at_ms, min(newest_ms + self.segment_ms + 1, latest_taken))

    def marker_rolls_at_ms(self, newest_ms: int) -> int:
        """The time from which on a marker opens a new segment, whatever record the present one begins with."""
        return newest_ms + self.segment_ms + 1

    def is_far_ahead(self, newest_ms: int, at_ms: int) -> bool:
        """Whether the newest timestamp is so late that a marker would wait too long: then only a roll helps."""
        return newest_ms > at_ms + _AHEAD_MS

    def pause_before_abort_ms(self, at_ms: int) -> int:
        """How long the marker must wait for a witness of this moment, in case the witness itself opened a segment."""
        stamped_ms = at_ms if self.broker_stamps else self.witness_ms(at_ms)
        return max(0, self.marker_rolls_at_ms(stamped_ms) + _MARGIN_MS - at_ms)


def roll_rule(settings: Mapping[str, SettingNow], *, segment_ms: int) -> RollRule:
    """The rule for a topic that is, or will be, ready: segment.ms at most `segment_ms`, room for markers."""

    def bound(*names: str) -> int:
        return min((int(settings[each].value) for each in names if each in settings), default=2**63 - 1)

    return RollRule(
        segment_ms=min(int(settings["segment.ms"].value), segment_ms),
        broker_stamps=settings["message.timestamp.type"].value == "LogAppendTime",
        stamps_after_max_ms=bound("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"),
        stamps_before_max_ms=max(LEAST_PAST_MS, bound(*PAST_BOUNDS)),
    )


def bounds_in_the_way(settings: Mapping[str, SettingNow]) -> list[str]:
    """The settings that might make the topic refuse a marker."""
    if settings["message.timestamp.type"].value == "LogAppendTime":
        return []
    return [name for name in PAST_BOUNDS if name in settings and int(settings[name].value) < LEAST_PAST_MS]


def transactional_id(topic: str) -> str:
    return f"lastword-compact-{topic}"


def nudger(connection: Connection, topic: str) -> Producer:
    """A producer with the transactional id of the topic: making it ends a transaction that a predecessor left open.

    On return the markers of that transaction are written. The producer is dropped and not closed: the client's own
    close waits for the cluster without a limit.
    """
    producer = connection.producer(
        transactional_id=transactional_id(topic), transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
    )
    with _explained(topic, producer):
        producer.init_transactions(_PATIENCE_S)
        return producer


@dataclass(frozen=True, kw_only=True)
class Nudged:
    """The offsets of a nudge's records, by partition."""

    witnesses: Mapping[int, int]
    rolls: Mapping[int, int]


def nudge(
    producer: Producer,
    topic: str,
    *,
    partitions: Iterable[int],
    rolls_ms: Mapping[int, int],
    rule: RollRule,
    before_abort: Callable[[], None],
) -> Nudged:
    """One nudge of each partition; a partition in `rolls_ms` also gets a roll with that timestamp."""
    with _explained(topic, producer):
        producer.begin_transaction()
        try:
            began_ms = now_ms()
            witnesses = _append(producer, topic, dict.fromkeys(partitions, rule.witness_ms(began_ms)))
            time.sleep(rule.pause_before_abort_ms(began_ms) / 1000)
            rolls = _append(producer, topic, rolls_ms)
            before_abort()
        finally:
            producer.abort_transaction(_PATIENCE_S)
    return Nudged(witnesses=witnesses, rolls=rolls)


def newest_timestamps_ms(admin: AdminClient, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The newest timestamp in each partition, markers and aborted records included; -1 where there is none."""
    requests = {TopicPartition(topic, partition): _NEWEST for partition in partitions}
    with _explained(topic):
        answers = admin.list_offsets(requests, request_timeout=_PATIENCE_S) if requests else {}
        return {tp.partition: answer.result().timestamp for tp, answer in answers.items()}


def gone(consumer: Consumer, topic: str, offsets: Mapping[int, int]) -> set[int]:
    """The partitions whose record at the given offset is no longer there: one small fetch for each."""
    if not offsets:
        return set()
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
    pending, without_record = set(offsets), set()
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
            without_record.add(partition)
    return without_record


@contextmanager
def peeker(connection: Connection) -> Iterator[Consumer]:
    """A consumer for `gone`: it sees aborted records too, and fetches as little as the broker can give."""
    consumer = connection.consumer(
        isolation_level="read_uncommitted",
        enable_partition_eof=True,
        fetch_message_max_bytes=1_000,
        queued_min_messages=1,
        # By default the client pauses for a second as soon as one record is queued.
        fetch_queue_backoff_ms=1,
    )
    try:
        yield consumer
    finally:
        with suppress(KafkaException):
            consumer.close()


def _answering(message: Any, topic: str) -> int | None:
    """The partition that this message answers for; None for an error that the client will retry."""
    error = message.error()
    # No record at or after the offset, or a log that starts after it: both mean that the record is gone.
    if error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
        return int(message.partition())
    if error.retriable() or error.code() in (KafkaError._TRANSPORT, NO_GROUP):
        return None
    raise translated(error, f"reading {topic}")


def _append(producer: Producer, topic: str, stamps_ms: Mapping[int, int]) -> dict[int, int]:
    """Appends one tombstone to each partition, each in a separate batch; returns their offsets."""
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
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, f"no acknowledgement within {_PATIENCE_S} s"))
    return offsets


@contextmanager
def _explained(topic: str, producer: Producer | None = None) -> Iterator[None]:
    try:
        yield
    except KafkaException as failure:
        code = failure.args[0].code()
        if code in FENCED:
            raise LastwordError(
                f"another machine compacts {topic} too, or this process was stopped for "
                f"{_TRANSACTION_TIMEOUT_MS // 1000} s: try again later"
            ) from None
        # A stuck transaction does not mean that the cluster is away: ask the cluster.
        if producer is not None and code in _STANDSTILL and _answers(producer, topic):
            raise LastwordError(
                f"nudging {topic}: the cluster is up, but its transaction {transactional_id(topic)} is stuck: try "
                f"again; if it stays stuck, raise {PAST_BOUNDS[0]} of the topic if it is small, and restart the broker "
                "that coordinates the transaction (its log says why)"
            ) from None
        raise translated(failure, f"nudging {topic}") from None


def _answers(producer: Producer, topic: str) -> bool:
    """Whether the cluster is there, with a leader for every partition of the topic."""
    try:
        found = producer.list_topics(topic, timeout=_SIGN_OF_LIFE_S).topics[topic]
    except KafkaException:
        return False
    return found.error is None and all(partition.leader >= 0 for partition in found.partitions.values())
