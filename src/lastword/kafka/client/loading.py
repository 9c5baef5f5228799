"""Many rows into a table, as fast as the cluster takes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lastword.core.errors import LastwordError, TopicChanged, WriteFailed
from lastword.core.record import NUDGE_KEY
from lastword.core.row_json import Write
from lastword.kafka.client.client_errors import translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.client.same_topic import SameTopic
from lastword.kafka.client.write_failures import WriteFailures, fatal_cause
from lastword.kafka.client.writing import BULK_SETTINGS, LOOK_EVERY_S, check_key, produce_when_there_is_room

_BATCH_BYTES = 1_000_000
_BATCH_FRAME_BYTES = 100


class LoadStopped(LastwordError):
    """A load ended early: `acknowledged` records are in the topic."""

    def __init__(self, cause: LastwordError, advice: str, acknowledged: int) -> None:
        super().__init__(f"{cause}; {advice}")
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

    A mistake in `writes` stops the load: the records before it are flushed first, and LoadStopped says how many. After
    every `look_every` records it looks for failures and reports the progress; for slow `writes` choose small values of
    `look_every` and `linger_ms`.
    """
    same = SameTopic(connection, topic, patience_s=patience_s)
    topic_id = same.before()
    failed: list[tuple[KafkaError, Any]] = []
    producer = connection.producer(
        linger_ms=linger_ms,
        batch_size=_batch_bytes(same.admin, topic),
        message_timeout_ms=int(patience_s * 1000),
        # A callback for each success would cost a third of the speed. A record that is not reported as failed after a
        # flush was acknowledged.
        delivery_report_only_error=True,
        on_delivery=lambda error, message: failed.append((error, message)),
        **BULK_SETTINGS,
    )

    def look() -> None:
        try:
            same.meanwhile(topic_id)
        except TopicChanged:
            # The queue would go to the new topic.
            producer.purge()
            raise

    sent, mistake = _send(producer, topic, writes, failed, look_every=look_every, look=look, progress=progress)
    try:
        _flush(producer, patience_s + 5, look)
        if failed or len(producer):
            look()
        else:
            same.after(topic_id)
    except KeyboardInterrupt:
        mistake = _interrupted()
    except TopicChanged as failure:
        # Comes before all other errors: no record counts as acknowledged then.
        mistake = failure
    except LastwordError as failure:
        mistake = mistake or failure
    if failed and not isinstance(mistake, TopicChanged):
        error, message = failed[0]
        row = f"{topic}, key {(message.key() or b'')[:60]!r}, {len(message.value() or b'')} bytes"
        failures = WriteFailures(same.admin, topic, same.answered)
        mistake = failures.of(error, f"writing to {row}", message.partition())
    return _acknowledged(topic, sent, len(failed) + len(producer), mistake)


def _send(
    producer: Producer,
    topic: str,
    writes: Iterable[Write],
    failed: list[tuple[KafkaError, Any]],
    *,
    look_every: int,
    look: Callable[[], None],
    progress: Callable[[int], None] | None,
) -> tuple[int, LastwordError | None]:
    """How many records were queued: up to the end of `writes`, the first mistake in them or the first failure."""
    sent, produce = 0, producer.produce
    try:
        for write in writes:
            key = write.key
            # Checked here first: a call for each of a million good keys would cost a tenth of the speed.
            if not key or key == NUDGE_KEY:
                check_key(key)
            try:
                if write.headers:
                    produce(topic, write.value, key, headers=list(write.headers))
                else:  # even empty headers would cost a third of the call
                    produce(topic, write.value, key)
            except BufferError:
                again = partial(produce, topic, write.value, key, headers=list(write.headers))
                produce_when_there_is_room(producer, again, look)
            sent += 1
            if sent % look_every == 0:
                producer.poll(0)
                if failed:
                    break
                look()
                if progress is not None:
                    progress(sent)
    except LastwordError as refusal:
        return sent, refusal
    except KeyboardInterrupt:
        return sent, _interrupted()
    except OSError as failure:
        return sent, LastwordError(f"reading the rows: {failure.strerror or failure}")
    except KafkaException as failure:
        return sent, translated(fatal_cause(producer, failure), f"writing to {topic}")
    return sent, None


def _interrupted() -> LastwordError:
    mistake = LastwordError("interrupted")
    mistake.exit_code = 130
    return mistake


def _acknowledged(topic: str, sent: int, lost: int, mistake: LastwordError | None) -> int:
    """The number of acknowledged records, which is all that were sent; otherwise an error that has the number."""
    if isinstance(mistake, TopicChanged):
        advice = f"how many of the {sent} records sent are in the topic is not known: load all of them again"
        raise LoadStopped(mistake, advice, 0)
    if lost:
        # Not the first of them: each partition fails at its own time.
        advice = (
            f"{sent - lost} of the {sent} records sent were acknowledged: put that right and load all of them again"
        )
        raise LoadStopped(mistake or WriteFailed(f"writing to {topic}: no answer in time"), advice, sent - lost)
    if mistake is not None:
        raise LoadStopped(mistake, f"the {sent} records before it were acknowledged", sent)
    return sent


def _batch_bytes(admin: AdminClient, topic: str) -> int:
    """The largest batch that the topic takes: its limit is for a batch, and a larger one is refused as a whole."""
    try:
        limit = int(settings_now(admin, topic)["max.message.bytes"].value)
    except LastwordError:
        # Without the right to see the settings: a size that most topics take.
        return _BATCH_BYTES
    return max(1, min(_BATCH_BYTES, limit - _BATCH_FRAME_BYTES))


def _flush(producer: Producer, timeout_s: float, look: Callable[[], None]) -> None:
    """Sends the queued records; checks the topic first, and again about once a second."""
    give_up_at = time.monotonic() + timeout_s
    while len(producer) and time.monotonic() < give_up_at:
        look()
        producer.flush(LOOK_EVERY_S)
