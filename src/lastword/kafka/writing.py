"""Writing a table: one idempotent producer, acks from all replicas, murmur2, so that every key has one home."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lastword.core.errors import BadInput, LastwordError, WriteFailed
from lastword.core.lines import NO_KEY, Write
from lastword.core.position import Position
from lastword.core.record import Headers
from lastword.kafka.connection import Connection, translated
from lastword.kafka.live_settings import settings_now
from lastword.kafka.nudge import NUDGE_KEY

MAX_RECORD_BYTES = 64 * 1024 * 1024
_BATCH_BYTES = 1_000_000
_BATCH_FRAME_BYTES = 100


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

    def __init__(self, connection: Connection, topic: str, *, patience_s: float = 30.0) -> None:
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

    def write(self, key: bytes, value: bytes | None, headers: Headers = ()) -> Ack:
        """Writes one record (a tombstone for None) and returns when it is acknowledged."""
        check_key(key)
        outcome: list[tuple[KafkaError | None, Any]] = []
        try:
            self._single.produce(
                self.topic,
                key=key,
                value=value,
                headers=list(headers),
                on_delivery=lambda error, message: outcome.append((error, message)),
            )
            while not outcome:
                self._single.poll(0.1)
        except KafkaException as failure:
            raise translated(failure, f"writing to {self.topic}") from None
        told = _outcome(self.topic, *outcome[0])
        if isinstance(told, LastwordError):
            raise told
        return told

    def write_all(self, writes: Sequence[Write]) -> list[Ack | LastwordError]:
        """For each write, where it stands or why it was not acknowledged; returns when that is known of all."""
        outcomes: dict[int, Ack | LastwordError] = {}

        def told(number: int, error: KafkaError | None, message: Any) -> None:
            outcomes[number] = _outcome(self.topic, error, message)

        for number, write in enumerate(writes):
            produce = partial(
                self._single.produce,
                self.topic,
                write.value,
                write.key,
                headers=list(write.headers),
                on_delivery=partial(told, number),
            )
            try:
                check_key(write.key)
                while not _queued(produce):
                    self._single.poll(0.05)
            except LastwordError as refusal:
                outcomes[number] = refusal
            except KafkaException as failure:
                outcomes[number] = translated(failure, f"writing to {self.topic}")
        while len(outcomes) < len(writes):
            self._single.poll(0.1)
        return [outcomes[number] for number in range(len(writes))]

    def give_up(self) -> None:
        """Has everything that is not acknowledged fail at once; from any thread."""
        self._single.purge()

    def close(self) -> None:
        self._single.flush(self._patience_s)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            # Whoever was interrupted must not wait for what was not acknowledged.
            self.give_up()
        self.close()


def _outcome(topic: str, error: KafkaError | None, message: Any) -> Ack | LastwordError:
    if error is not None:
        return translated(error, f"writing to {topic}")
    return Ack(partition=message.partition(), offset=message.offset(), timestamp=message.timestamp()[1])


def _queued(produce: Callable[[], None]) -> bool:
    """Whether the queue had room."""
    try:
        produce()
    except BufferError:
        return False
    return True


class LoadStopped(LastwordError):
    """A load ended early: `acknowledged` records are kept."""

    def __init__(self, cause: LastwordError, told: str, acknowledged: int) -> None:
        super().__init__(f"{cause}; {told}")
        self.cause = cause
        self.exit_code = cause.exit_code
        self.acknowledged = acknowledged


def load(
    connection: Connection,
    topic: str,
    writes: Iterable[Write],
    *,
    patience_s: float = 120.0,
    linger_ms: int = 50,
    look_every: int = 10_000,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Writes all and returns how many were acknowledged; a broker may restart meanwhile, within `patience_s`.

    A mistake in `writes` stops it: what came before is flushed first, and LoadStopped says how much that was. After
    every `look_every` records it looks for failures and tells the progress; where `writes` take their time, that and
    `linger_ms` should be small.
    """
    admin = connection.admin()
    connection.topic(topic, admin)
    failed: list[tuple[KafkaError, Any]] = []
    producer = connection.producer(
        linger_ms=linger_ms,
        batch_size=_batch_bytes(admin, topic),
        queue_buffering_max_messages=500_000,
        queue_buffering_max_kbytes=512 * 1024,
        message_max_bytes=MAX_RECORD_BYTES,
        message_timeout_ms=int(patience_s * 1000),
        compression_type="lz4",
        # A callback for each success would cost a third of the speed; what is not reported as failed after a flush
        # was acknowledged.
        delivery_report_only_error=True,
        on_delivery=lambda error, message: failed.append((error, message)),
    )
    sent, mistake = _send(producer, topic, writes, failed, look_every=look_every, progress=progress)
    try:
        _flush(producer, patience_s + 5)
    except KeyboardInterrupt:
        mistake = _interrupted()
    lost = len(failed) + len(producer)
    if failed:
        error, message = failed[0]
        row = f"{topic}, key {(message.key() or b'')[:60]!r}, {len(message.value() or b'')} bytes"
        mistake = translated(error, f"writing to {row}")
    return _acknowledged(topic, sent, lost, mistake)


def _send(
    producer: Producer,
    topic: str,
    writes: Iterable[Write],
    failed: list[tuple[KafkaError, Any]],
    *,
    look_every: int,
    progress: Callable[[int], None] | None,
) -> tuple[int, LastwordError | None]:
    """How many were queued, up to the end of `writes`, the first mistake in them or the first failure to send."""
    sent, produce = 0, producer.produce
    try:
        for write in writes:
            key = write.key
            # Asked here first: a call for each of a million good keys would cost a tenth of the speed.
            if not key or key == NUDGE_KEY:
                check_key(key)
            try:
                if write.headers:
                    produce(topic, write.value, key, headers=list(write.headers))
                else:  # the keyword alone, with nothing in it, would cost a third of the call
                    produce(topic, write.value, key)
            except BufferError:
                _wait_for_room(producer, topic, write)
            sent += 1
            if sent % look_every == 0:
                producer.poll(0)
                if failed:
                    break
                if progress is not None:
                    progress(sent)
    except LastwordError as refusal:
        return sent, refusal
    except KeyboardInterrupt:
        return sent, _interrupted()
    except OSError as failure:
        return sent, LastwordError(f"reading the rows: {failure.strerror or failure}")
    except KafkaException as failure:
        return sent, translated(failure, f"writing to {topic}")
    return sent, None


def _interrupted() -> LastwordError:
    mistake = LastwordError("interrupted")
    mistake.exit_code = 130
    return mistake


def _acknowledged(topic: str, sent: int, lost: int, mistake: LastwordError | None) -> int:
    """How many of those sent were acknowledged: all of them, or an error that says how many."""
    if lost:
        # Not the first so many: partitions fail each in its own time.
        told = f"{sent - lost} of the {sent} records sent were acknowledged: put that right and load all of them again"
        raise LoadStopped(mistake or WriteFailed(f"writing to {topic}: no answer in time"), told, sent - lost)
    if mistake is not None:
        raise LoadStopped(mistake, f"the {sent} records before it were acknowledged", sent)
    return sent


def _batch_bytes(admin: AdminClient, topic: str) -> int:
    """As large as a batch may be: the topic's limit is for a batch, and ours would be refused as a whole."""
    try:
        limit = int(settings_now(admin, topic)["max.message.bytes"].value)
    except LastwordError:
        # Without the right to see the settings, what most topics take.
        return _BATCH_BYTES
    return max(1, min(_BATCH_BYTES, limit - _BATCH_FRAME_BYTES))


def check_key(key: bytes | None) -> None:
    """Refuses keys that a table can't have, before anything is sent."""
    if not key:
        raise BadInput(NO_KEY)
    if key == NUDGE_KEY:
        raise BadInput(f"the key {NUDGE_KEY.decode()!r} is reserved for compaction: choose another")


def _wait_for_room(producer: Producer, topic: str, write: Write) -> None:
    """Queues a record as soon as the full queue has room for it: in its turn, before any later one."""
    while True:
        producer.poll(0.05)
        try:
            producer.produce(topic, write.value, write.key, headers=list(write.headers))
            return
        except BufferError:
            continue


def _flush(producer: Producer, timeout_s: float) -> None:
    give_up_at = time.monotonic() + timeout_s
    while len(producer) and time.monotonic() < give_up_at:
        producer.flush(1.0)
