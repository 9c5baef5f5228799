"""Writing a table: one idempotent producer, acks from all replicas, murmur2, so that every key has one home."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from lastword.core.errors import BadInput, LastwordError, TopicChanged
from lastword.core.position import Position
from lastword.core.record import NUDGE_KEY, Headers
from lastword.core.row_json import NO_KEY, Write
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.write_failures import WriteFailures, fatal_cause

MAX_RECORD_BYTES = 64 * 1024 * 1024
# The settings of every producer, so that it does not depend on the kind of write whether a value fits into the topic.
RECORD_SETTINGS: dict[str, Any] = {"message_max_bytes": MAX_RECORD_BYTES, "compression_type": "lz4"}
# The settings of a producer of many records: a deep queue.
BULK_SETTINGS: dict[str, Any] = {
    **RECORD_SETTINGS,
    "queue_buffering_max_messages": 500_000,
    "queue_buffering_max_kbytes": 512 * 1024,
}
# How often to look, while writes wait for their acknowledgement, whether the topic is still the same.
LOOK_EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Ack:
    """The place of an acknowledged record, which from now on survives the loss of any single process."""

    partition: int
    offset: int
    timestamp: int

    @property
    def position(self) -> Position:
        """The position just past the record: a reader must have reached it to see the record."""
        return Position.after(self.partition, self.offset)


class Writer:
    """Writes to one topic; thread-safe as its producer is. Close it, or use it with `with`."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        patience_s: float = 30.0,
        expected_id: Callable[[], str | None] | None = None,
    ) -> None:
        """Writes to the topic with this name and, if given, `expected_id`; never to a later topic of the same name."""
        self.topic = topic
        self._patience_s = patience_s
        self._single = connection.producer(linger_ms=0, message_timeout_ms=int(patience_s * 1000), **RECORD_SETTINGS)
        connection.topic(topic, self._single)
        # Whether this writer writes nothing more, because its topic is gone or its producer failed: make another.
        self.is_spent = False
        # The error that the producer can't recover from.
        self._fatal: KafkaException | None = None
        self._same = SameTopic(connection, topic, patience_s=patience_s, expected_id=expected_id)

    def write(self, key: bytes, value: bytes | None, headers: Headers = ()) -> Ack:
        """Writes one record (a tombstone for None) and returns when it is acknowledged."""
        check_key(key)
        topic_id = self._same.before()
        outcome: list[tuple[KafkaError | None, Any]] = []
        try:
            self._single.produce(
                self.topic,
                key=key,
                value=value,
                headers=list(headers),
                on_delivery=lambda error, message: outcome.append((error, message)),
            )
        except KafkaException as failure:
            raise self._refusal(failure) from None
        lost = self._until(lambda: bool(outcome), topic_id)
        error, message = outcome[0]
        if error is not None:
            raise lost or self._failures({0: (error, message)})[0]
        self._same.after(topic_id)
        return _ack(message)

    def write_all(self, writes: Sequence[Write]) -> list[Ack | LastwordError]:
        """The Ack of each write, or why it was not acknowledged; returns when all are known."""
        topic_id = self._same.before()
        outcomes: dict[int, Ack | LastwordError] = {}
        refused: dict[int, tuple[KafkaError, Any]] = {}

        def delivered(number: int, error: KafkaError | None, message: Any) -> None:
            if error is None:
                outcomes[number] = _ack(message)
            else:
                refused[number] = (error, message)

        for number, write in enumerate(writes):
            produce = partial(
                self._single.produce,
                self.topic,
                write.value,
                write.key,
                headers=list(write.headers),
                on_delivery=partial(delivered, number),
            )
            try:
                check_key(write.key)
                try:
                    produce()
                except BufferError:
                    produce_when_there_is_room(self._single, produce)
            except LastwordError as refusal:
                outcomes[number] = refusal
            except KafkaException as failure:
                outcomes[number] = self._refusal(failure)
        lost = self._until(lambda: len(outcomes) + len(refused) == len(writes), topic_id)
        outcomes |= dict.fromkeys(refused, lost) if lost is not None else self._failures(refused)
        outcomes |= self._in_another_topic(topic_id, outcomes)
        return [outcomes[number] for number in range(len(writes))]

    def _until(self, is_done: Callable[[], bool], topic_id: str) -> LastwordError | None:
        """Returns when `is_done`; with the reason if the writes were given up because the topic is another one now."""
        lost, look_at = None, time.monotonic() + LOOK_EVERY_S
        while not is_done():
            try:
                self._single.poll(0.1)
            except KafkaException as failure:
                raise self._refusal(failure) from None
            if lost is None and time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_EVERY_S
                try:
                    self._same.meanwhile(topic_id)
                except TopicChanged as failure:
                    # librdkafka would wait for the topic to come back, and write to any topic of the name.
                    lost, self.is_spent = failure, True
                    self._single.purge()
        return lost

    def _refusal(self, failure: KafkaException) -> LastwordError:
        """Why the producer writes nothing more, or not this record."""
        error = failure.args[0]
        if self._fatal is None and (error.fatal() or error.code() == KafkaError._FATAL):
            self._fatal, self.is_spent = fatal_cause(self._single, failure), True
        return translated(self._fatal or failure, f"writing to {self.topic}")

    def _failures(self, refused: Mapping[int, tuple[KafkaError, Any]]) -> dict[int, LastwordError]:
        """Why each write was refused; asks the cluster once for all of them."""
        failures, where = WriteFailures(self._same.admin, self.topic, self._same.answered), f"writing to {self.topic}"
        return {number: failures.of(error, where, message.partition()) for number, (error, message) in refused.items()}

    def _in_another_topic(
        self, topic_id: str, outcomes: Mapping[int, Ack | LastwordError]
    ) -> dict[int, Ack | LastwordError]:
        """The error for acknowledged writes that may be in another topic than the expected one."""
        acknowledged = [number for number, outcome in outcomes.items() if isinstance(outcome, Ack)]
        try:
            if acknowledged:
                self._same.after(topic_id)
        except LastwordError as failure:
            return dict.fromkeys(acknowledged, failure)
        return {}

    def give_up(self) -> None:
        """Makes all writes that are not acknowledged fail at once; from any thread."""
        self._same.give_up()
        self._single.purge()

    def close(self) -> None:
        self._single.flush(self._patience_s)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        # After an interrupt nobody waits for acknowledgements.
        self.give_up()
        with suppress(KafkaException):  # the first error is on its way already
            self.close()


def _ack(message: Any) -> Ack:
    return Ack(partition=message.partition(), offset=message.offset(), timestamp=message.timestamp()[1])


def produce_when_there_is_room(
    producer: Producer, produce: Callable[[], None], look: Callable[[], None] | None = None
) -> None:
    """Calls `produce`, which failed with a BufferError, until the full queue takes the record.

    So no later record of the caller overtakes this one. During the wait, `look` is called about once a second.
    """
    look_at = time.monotonic() + LOOK_EVERY_S
    while True:
        producer.poll(0.05)
        try:
            return produce()
        except BufferError:
            if look is not None and time.monotonic() >= look_at:
                look()
                look_at = time.monotonic() + LOOK_EVERY_S


def check_key(key: bytes | None) -> None:
    """Refuses keys that a table can't have, before anything is sent."""
    if not key:
        raise BadInput(NO_KEY)
    if key == NUDGE_KEY:
        raise BadInput(f"the key {NUDGE_KEY.decode()!r} is reserved for compaction: choose another")
