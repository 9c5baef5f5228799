"""What the cluster sends for a topic to someone who follows it: committed records, where each partition has been read
to, and the news that something needs a closer look."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from lastword.core.clock import now_ms
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection, translated
from lastword.kafka.client.messages import BATCH, NO_GROUP, PASSING, next_batch, record_of

_PAST_MOVED = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


class LeaderEpoch(NamedTuple):
    """The leader epoch of a record, and the offset after that record."""

    number: int
    end: int


@dataclass(kw_only=True)
class FeedBatch:
    """One look into the feed, in the order of each partition."""

    records: list[Record] = field(default_factory=list)
    # For each partition that went on, the next offset: past a gap too, where the end of the partition was reached.
    reached: dict[int, int] = field(default_factory=dict)
    # Of the last record of each partition.
    leader_epochs: dict[int, LeaderEpoch] = field(default_factory=dict)
    # Partitions where an offset was missing: compaction took a record, or a transaction left its marker.
    holes: set[int] = field(default_factory=set)
    # Partitions that are read to their end.
    at_end: set[int] = field(default_factory=set)
    # The place asked for is not in the log any more, in the cluster's words.
    past_moved: str | None = None
    # A broker is away, or the topic is: someone should look.
    doubtful: bool = False
    # A moment, in ms, before which none of this was under way: what it says of an end was so at that moment or later.
    not_before: int = 0


class Feed:
    """A consumer assigned by hand. It stores nothing: where to go on is the caller's to know."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._doubtful = False
        self._next: dict[int, int] = {}
        self._drained_at = now_ms()
        self._consumer = connection.consumer(
            enable_partition_eof=True,
            # The broker answers as soon as there is something, whatever this says; when idle it is asked less often.
            fetch_wait_max_ms=100,
            fetch_queue_backoff_ms=5,
            error_cb=self._on_error,
        )

    def add(self, position: Mapping[int, int], leader_epochs: Mapping[int, LeaderEpoch]) -> None:
        """Feeds these partitions too, from here on; with the epoch the broker notices a log that was truncated."""
        wanted = []
        for partition, offset in position.items():
            epoch = leader_epochs.get(partition)
            if epoch is None:
                wanted.append(TopicPartition(self._topic, partition, offset))
            else:
                # From the record that has the epoch: what lies between it and the position is not for us to see, and
                # may have been written under a later leader.
                wanted.append(TopicPartition(self._topic, partition, epoch.end, leader_epoch=epoch.number))
        self._consumer.incremental_assign(wanted)
        self._next.update(position)

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(self._next)

    def poll(self, patience_s: float) -> FeedBatch:
        """What came within `patience_s`; at once when there is something."""
        heard = FeedBatch(not_before=self._drained_at)
        last: dict[int, Any] = {}
        upcoming = self._next
        asked_at = now_ms()
        messages = next_batch(self._consumer, patience_s=patience_s)
        if len(messages) < BATCH:
            # Nothing is waiting. The time from before the question, because this process may be stopped at any line.
            self._drained_at = asked_at
        for message in messages:
            error = message.error()
            if error is None:
                partition, offset = message.partition(), message.offset()
                if offset != upcoming[partition]:
                    heard.holes.add(partition)
                upcoming[partition] = offset + 1
                last[partition] = message
                heard.records.append(record_of(message, partition, offset))
                heard.at_end.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._note_end(heard, message.partition(), message.offset())
            else:
                self._note_trouble(heard, message.partition(), error)
        for partition, message in last.items():
            heard.reached[partition] = upcoming[partition]
            epoch = message.leader_epoch()
            if epoch is not None:
                heard.leader_epochs[partition] = LeaderEpoch(epoch, upcoming[partition])
        heard.doubtful, self._doubtful = heard.doubtful or self._doubtful, False
        return heard

    def ends(self) -> Position:
        """The high watermarks as the last fetches told them."""
        known = {}
        for partition in self._next:
            # Cached: asks nobody.
            _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if high >= 0:
                known[partition] = high
        return Position(known)

    def close(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note_end(self, heard: FeedBatch, partition: int, end: int) -> None:
        if end > self._next[partition]:
            # Nothing that we may read was left before the end: aborted, a marker, or compacted away.
            heard.holes.add(partition)
            self._next[partition] = heard.reached[partition] = end
        heard.at_end.add(partition)

    def _note_trouble(self, heard: FeedBatch, partition: int, error: KafkaError) -> None:
        if error.code() == NO_GROUP:
            return
        if error.code() in _PAST_MOVED:
            heard.past_moved = f"{self._topic}[{partition}]: {error.str()}"
        elif error.code() in PASSING or error.code() in _GONE:
            heard.doubtful = True
        else:
            raise translated(error, f"following {self._topic}[{partition}]")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in PASSING:
            self._doubtful = True
