"""Transactions under one id: what is written in one is there as a whole or not at all, for whoever reads committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from lastword.core.errors import Fenced
from lastword.kafka.connection import FENCED, Connection, translated
from lastword.kafka.writing import MAX_RECORD_BYTES

# What a process that died left open hides later records from readers for so long, unless its successor comes first.
TIMEOUT_S = 30.0


Fields = tuple[str, bytes | None, bytes | None, list[tuple[str, bytes]] | None, int]


class Outgoing(NamedTuple):
    """A record to write. Whoever writes millions gives tuples of the same fields."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes]] | None = None
    partition: int = -1  # by the key


class Transactions:
    """The only writer under its id: whoever takes the id later completes or aborts what is open and ends this one."""

    def __init__(self, connection: Connection, name: str, *, batch_bytes: int = 1024**2) -> None:
        """Takes the id; on return nothing that was written under it before is open any more."""
        self._name = name
        self._turn = threading.Lock()  # of whoever writes: there is one transaction at a time
        self._patience_s = max(TIMEOUT_S, connection.patience_s)
        self._producer: Producer = connection.producer(
            transactional_id=name,
            transaction_timeout_ms=int(TIMEOUT_S * 1000),
            message_max_bytes=MAX_RECORD_BYTES,
            batch_size=batch_bytes,
            queue_buffering_max_messages=500_000,
            queue_buffering_max_kbytes=512 * 1024,
            compression_type="lz4",
            # A commit flushes.
            linger_ms=20,
            # A transaction that follows another at once waits so long before it asks again whether that one is closed.
            retry_backoff_ms=20,
        )
        try:
            with self._told("taking the transactional id"):
                # First a connection: without one librdkafka waits half a second before it asks again.
                connection.reach(self._producer)
                self._producer.init_transactions(self._patience_s)
        except BaseException:
            self.close()
            raise

    def write(self, records: Iterable[Fields], last: Outgoing) -> int:
        """Writes all of it in one transaction and returns the offset of `last` once it is committed.

        After an error nobody knows whether it was committed: whoever takes the id anew can tell.
        """
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())

        with self._turn, self._told("a transaction"):
            self._producer.begin_transaction()
            try:
                for record in records:
                    self._produce(record)
                self._produce(last, delivered)
                self._producer.commit_transaction(self._patience_s)
            except BaseException:
                # What stays open would hide later records until it times out.
                with suppress(KafkaException):
                    self._producer.abort_transaction(5.0)
                raise
        return offsets[0]

    def close(self) -> None:
        """Ends its connections; the id stays taken by it until another takes it."""
        # It aborts what is open, which a successor does not let it: as an error set beside its answer.
        with suppress(KafkaException, SystemError):
            self._producer.close()

    def _produce(self, record: Fields, on_delivery: Callable[[KafkaError | None, Any], None] | None = None) -> None:
        topic, value, key, headers, partition = record
        while True:
            try:
                self._producer.produce(topic, value, key, partition, on_delivery, headers=headers)  # type: ignore[arg-type]
                return
            except BufferError:
                self._producer.poll(0.05)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            if failure.args[0].code() in FENCED:
                raise Fenced(
                    f"{what} of {self._name}: another process has taken this id, or it was open for {TIMEOUT_S:.0f} s"
                ) from None
            raise translated(failure, f"{what} of {self._name}") from None
