"""Writing a table: one idempotent producer, acks from all replicas, murmur2, so that every key has one home."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lastword.core.errors import BadInput, LastwordError, TopicChanged
from lastword.core.position import Position
from lastword.core.record import NUDGE_KEY, Headers
from lastword.core.row_json import NO_KEY, Write
from lastword.kafka.client.connection import Connection, translated
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.write_failures import WriteFailures, fatal_cause

MAX_RECORD_BYTES = 64 * 1024 * 1024
# How often a write that is not acknowledged has the topic looked at.
_LOOK_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Ack:
    """Where an acknowledged record stands; it survives the loss of any single process from here on."""

    partition: int
    offset: int
    timestamp: int

    @property
    def position(self) -> Position:
        """The position just past the record: what a reader must have reached to see it."""
        return Position.after(self.partition, self.offset)


class Writer:
    """Writes to one topic; thread-safe as its producer is. Close it, or use it with `with`."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        patience_s: float = 30.0,
        meant: Callable[[], str | None] | None = None,
    ) -> None:
        """Writes to the topic that has this name now, or whose id `meant` gives, and to no later one of the name."""
        self.topic = topic
        self._patience_s = patience_s
        self._single = connection.producer(
            linger_ms=0,
            message_max_bytes=MAX_RECORD_BYTES,
            message_timeout_ms=int(patience_s * 1000),
            # As in a load: whether a value fits into the topic must not depend on how it is written.
            compression_type="lz4",
        )
        connection.topic(topic, self._single)
        # Whether it writes nothing more, because its topic is gone or its producer can't go on: another has to go on.
        self.is_spent = False
        # What the producer can't recover from.
        self._fatal: KafkaException | None = None
        self._same = SameTopic(connection, topic, patience_s=patience_s, meant=meant)

    def write(self, key: bytes, value: bytes | None, headers: Headers = ()) -> Ack:
        """Writes one record (a tombstone for None) and returns when it is acknowledged."""
        check_key(key)
        meant = self._same.before()
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
        lost = self._until(lambda: bool(outcome), meant)
        error, message = outcome[0]
        if error is not None:
            raise lost or self._failures({0: (error, message)})[0]
        self._same.after(meant)
        return _ack(message)

    def write_all(self, writes: Sequence[Write]) -> list[Ack | LastwordError]:
        """For each write, where it stands or why it was not acknowledged; returns when that is known of all."""
        meant = self._same.before()
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
                while not _queued(produce):
                    self._single.poll(0.05)
            except LastwordError as refusal:
                outcomes[number] = refusal
            except KafkaException as failure:
                outcomes[number] = self._refusal(failure)
        lost = self._until(lambda: len(outcomes) + len(refused) == len(writes), meant)
        outcomes |= dict.fromkeys(refused, lost) if lost is not None else self._failures(refused)
        outcomes |= self._in_another_topic(meant, outcomes)
        return [outcomes[number] for number in range(len(writes))]

    def _until(self, is_done: Callable[[], bool], meant: str) -> LastwordError | None:
        """Returns when all is known; the reason, where the writes were given up because the topic is another by now."""
        lost, look_at = None, time.monotonic() + _LOOK_S
        while not is_done():
            try:
                self._single.poll(0.1)
            except KafkaException as failure:
                raise self._refusal(failure) from None
            if lost is None and time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_S
                try:
                    self._same.meanwhile(meant)
                except TopicChanged as failure:
                    # librdkafka would wait for the topic to come back, and write to whatever comes.
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
        """Why each of them was refused; the cluster is asked once for all of them."""
        failures, where = WriteFailures(self._same.admin, self.topic, self._same.answered), f"writing to {self.topic}"
        return {number: failures.of(error, where, message.partition()) for number, (error, message) in refused.items()}

    def _in_another_topic(
        self, meant: str, outcomes: Mapping[int, Ack | LastwordError]
    ) -> dict[int, Ack | LastwordError]:
        """What becomes of acknowledgements that are not known to be of the topic that was meant."""
        acknowledged = [number for number, outcome in outcomes.items() if isinstance(outcome, Ack)]
        try:
            if acknowledged:
                self._same.after(meant)
        except LastwordError as failure:
            return dict.fromkeys(acknowledged, failure)
        return {}

    def give_up(self) -> None:
        """Has everything that is not acknowledged fail at once; from any thread."""
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
        # Whoever was interrupted must not wait for what was not acknowledged.
        self.give_up()
        with suppress(KafkaException):  # what went wrong is known already
            self.close()


def _ack(message: Any) -> Ack:
    return Ack(partition=message.partition(), offset=message.offset(), timestamp=message.timestamp()[1])


def _queued(produce: Callable[[], None]) -> bool:
    """Whether the queue had room."""
    try:
        produce()
    except BufferError:
        return False
    return True


def check_key(key: bytes | None) -> None:
    """Refuses keys that a table can't have, before anything is sent."""
    if not key:
        raise BadInput(NO_KEY)
    if key == NUDGE_KEY:
        raise BadInput(f"the key {NUDGE_KEY.decode()!r} is reserved for compaction: choose another")
