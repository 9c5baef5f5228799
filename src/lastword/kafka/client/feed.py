"""Following a topic: committed records as they arrive, how far each partition is read, and signs of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.messages import BATCH, NO_GROUP, PASSING, next_batch, record_of

_PAST_MOVED = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


class LeaderEpoch(NamedTuple):
    """The leader epoch of a record, and the offset after that record."""

    number: int
    end: int


@dataclass(kw_only=True)
class FeedBatch:
    """What one poll of the feed brought; the records of a partition are in offset order."""

    records: list[Record] = field(default_factory=list)
    # The next offset of each partition with progress; past a gap too, if the partition was read to its end.
    reached: dict[int, int] = field(default_factory=dict)
    # The epoch of the last record of each partition.
    leader_epochs: dict[int, LeaderEpoch] = field(default_factory=dict)
    # Partitions where an offset was missing: compaction removed a record, or a transaction left its marker.
    holes: set[int] = field(default_factory=set)
    # Partitions that are read to their end.
    at_end: set[int] = field(default_factory=set)
    # The cluster's message if the requested position is no longer in the log.
    past_moved: str | None = None
    # A broker or the topic is away: the follower should check the topic.
    doubtful: bool = False
    # In ms: an end that this batch reports was the end at this moment or later.
    not_before: int = 0


class Feed:
    """A consumer with assigned partitions. It commits nothing: the caller knows where to continue."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._doubtful = False
        self._next: dict[int, int] = {}
        self._drained_at = now_ms()
        self._consumer = connection.consumer(
            enable_partition_eof=True,
            # The broker answers at once when it has a record; when idle, it is asked less often.
            fetch_wait_max_ms=100,
            fetch_queue_backoff_ms=5,
            error_cb=self._on_error,
        )

    def add(self, position: Mapping[int, int], leader_epochs: Mapping[int, LeaderEpoch]) -> None:
        """Adds partitions, from a position on; with the epoch the broker notices a log that was truncated."""
        assignment = []
        for partition, offset in position.items():
            epoch = leader_epochs.get(partition)
            if epoch is None:
                assignment.append(TopicPartition(self._topic, partition, offset))
            else:
                # From the end of the record with the epoch: the offsets from there to the position are hidden from this
                # client, and may have been written under a later leader.
                assignment.append(TopicPartition(self._topic, partition, epoch.end, leader_epoch=epoch.number))
        self._consumer.incremental_assign(assignment)
        self._next.update(position)

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(self._next)

    def poll(self, patience_s: float) -> FeedBatch:
        """What came within `patience_s`; returns at once when there is something."""
        batch = FeedBatch(not_before=self._drained_at)
        last: dict[int, Any] = {}
        upcoming = self._next
        asked_at = now_ms()
        messages = next_batch(self._consumer, patience_s=patience_s)
        if len(messages) < BATCH:
            # Nothing is left. The time from before the poll, because this process may be stopped at any line.
            self._drained_at = asked_at
        for message in messages:
            error = message.error()
            if error is None:
                partition, offset = message.partition(), message.offset()
                if offset != upcoming[partition]:
                    batch.holes.add(partition)
                upcoming[partition] = offset + 1
                last[partition] = message
                batch.records.append(record_of(message, partition, offset))
                batch.at_end.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._note_end(batch, message.partition(), message.offset())
            else:
                self._note_trouble(batch, message.partition(), error)
        for partition, message in last.items():
            batch.reached[partition] = upcoming[partition]
            epoch = message.leader_epoch()
            if epoch is not None:
                batch.leader_epochs[partition] = LeaderEpoch(epoch, upcoming[partition])
        batch.doubtful, self._doubtful = batch.doubtful or self._doubtful, False
        return batch

    def ends(self) -> Position:
        """The high watermarks that came with the last fetches."""
        ends = {}
        for partition in self._next:
            # Cached: sends no request.
            _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if high >= 0:
                ends[partition] = high
        return Position(ends)

    def close(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note_end(self, batch: FeedBatch, partition: int, end: int) -> None:
        if end > self._next[partition]:
            # No record before the end reaches a consumer: aborted, a marker, or compacted away.
            batch.holes.add(partition)
            self._next[partition] = batch.reached[partition] = end
        batch.at_end.add(partition)

    def _note_trouble(self, batch: FeedBatch, partition: int, error: KafkaError) -> None:
        if error.code() == NO_GROUP:
            return
        if error.code() in _PAST_MOVED:
            batch.past_moved = f"{self._topic}[{partition}]: {error.str()}"
        elif error.code() in PASSING or error.code() in _GONE:
            batch.doubtful = True
        else:
            raise translated(error, f"following {self._topic}[{partition}]")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in PASSING:
            self._doubtful = True
