"""Transactions under one id: readers of committed data see all records of a transaction, or none.

librdkafka sends the request EndTxn again after a broken connection or a timeout. The first copy may arrive late and end
the next transaction in its middle: both have the same epoch, so the broker sees no difference. So a producer that may
have sent EndTxn twice begins no other transaction. Its successor takes the id, which raises the epoch: the broker
refuses the late copy.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, libversion

from lastword.core.errors import Fenced, LastwordError
from lastword.kafka.client.client_errors import FENCED, translated
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.writing import BULK_SETTINGS, produce_when_there_is_room

# A transaction that a dead process left open hides later records from readers for this long, unless its successor
# comes first.
TIMEOUT_S = 30.0

RecordFields = tuple[str, bytes | None, bytes | None, list[tuple[str, bytes]] | None, int]


class OutgoingRecord(NamedTuple):
    """A record to write. For millions of records, a plain tuple of the same fields is faster."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes]] | None = None
    partition: int = -1  # -1: by the key


class _Epoch(NamedTuple):
    """The broker counts how often a producer id was taken."""

    producer_id: int
    number: int

    @property
    def following(self) -> _Epoch:
        return _Epoch(self.producer_id, self.number + 1)


class _RequestLog:
    """A logger for librdkafka: collects the results of EndTxn requests, and the epoch of the producer.

    Nothing else has them in time: statistics come at intervals, and the error callback misses most disconnects.
    """

    _RESULT = re.compile(r"EndTxn returned (\w+) in state")
    _ACQUIRED = re.compile(r"Acquired PID\{Id:(\d+),Epoch:(\d+)\}")

    def __init__(self) -> None:
        self.results: list[str] = []
        self.epoch: _Epoch | None = None

    def log(self, _level: int, _format: str, event: str, _client: str, line: str) -> None:
        """librdkafka calls this from within `poll`, `flush` and the calls that end a transaction."""
        if event == "ENDTXN" and (result := self._RESULT.search(line)):
            self.results.append(result[1])
        elif event == "GETPID" and (acquired := self._ACQUIRED.search(line)):
            self.epoch = _Epoch(int(acquired[1]), int(acquired[2]))


class Transactions:
    """The only writer under its id: a later writer of the id ends the open transaction, and fences this one."""

    def __init__(self, connection: Connection, name: str, *, batch_bytes: int = 1024**2) -> None:
        """Takes the id; on return no earlier transaction of the id is open."""
        self._connection = connection
        self._name = name
        self._batch_bytes = batch_bytes
        self._turn = threading.Lock()  # one transaction at a time
        self._patience_s = max(TIMEOUT_S, connection.patience_s)
        # Whether an EndTxn of this producer may still be on its way to the broker.
        self._may_end_late = False
        # Another process took the id after this one: no transaction begins here any more.
        self._is_fenced = False
        # None after `close`.
        self._producer: Producer | None = None
        self._requests = _RequestLog()
        with self._translated("taking the transactional id"):
            self._producer, self._requests = self._take_id()

    def write(self, records: Iterable[RecordFields], last: OutgoingRecord) -> int:
        """Writes all records in one transaction and returns the offset of `last` once it is committed.

        After an error the transaction may be committed or not: that is known after the id is taken again.
        """
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())

        with self._turn, self._translated("a transaction"):
            if self._is_fenced:
                raise self._fenced()
            if self._may_end_late:
                self._take_id_again()
            producer = self._producer
            if producer is None:
                raise LastwordError(f"a transaction of {self._name}: it was closed")
            self._requests.results.clear()
            producer.begin_transaction()
            # Until the opposite is known.
            self._may_end_late, is_committing = True, False
            try:
                for record in records:
                    _produce(producer, record)
                _produce(producer, last, delivered)
                is_committing = True
                producer.commit_transaction(self._patience_s)
            except BaseException as failure:
                self._abort(producer, failure, was_committing=is_committing)
                raise
            producer.poll(0)
            self._may_end_late = self._requests.results != ["NO_ERROR"]
        return offsets[0]

    def close(self) -> None:
        """Drops the connections at once. The next writer of the id, or a timeout of the broker, ends a transaction."""
        # Dropped, not closed: the client's own close first aborts a transaction, and may wait for ever for the cluster.
        self._producer, self._may_end_late = None, False

    def _take_id(self) -> tuple[Producer, _RequestLog]:
        requests = _RequestLog()
        producer = self._connection.producer(
            transactional_id=self._name,
            transaction_timeout_ms=int(TIMEOUT_S * 1000),
            batch_size=self._batch_bytes,
            # A commit flushes.
            linger_ms=20,
            # A transaction right after another asks at this interval whether the earlier one is closed.
            retry_backoff_ms=20,
            # About 20 lines for each transaction, and none for a record.
            debug="eos",
            logger=requests,
            **BULK_SETTINGS,
        )
        # First a connection: without one librdkafka waits half a second before it asks again.
        self._connection.reach(producer)
        producer.init_transactions(self._patience_s)
        producer.poll(0)
        if requests.epoch is None:
            raise LastwordError(
                f"taking the transactional id {self._name}: librdkafka {libversion()[0]} does not log its epoch "
                "as 2.16 does, and without it a late EndTxn can't be recognised: install confluent-kafka 2.16"
            )
        return producer, requests

    def _take_id_again(self) -> None:
        """Replaces the producer; Fenced if another process has had the id meanwhile."""
        self._producer = None
        producer, requests = self._take_id()
        self._may_end_late = False
        if self._requests.epoch is None or requests.epoch != self._requests.epoch.following:
            # That process may have written what our caller has not read.
            self._is_fenced = True
            raise self._fenced()
        self._producer, self._requests = producer, requests

    def _fenced(self) -> Fenced:
        return Fenced(
            f"a transaction of {self._name}: another process has taken this id meanwhile, or the broker had to "
            "end the transaction before"
        )

    def _abort(self, producer: Producer, failure: BaseException, *, was_committing: bool) -> None:
        """Aborts a transaction that would hide later records until it times out."""
        failures = [failure]
        try:
            producer.abort_transaction(5.0)
            producer.poll(0)
        except KafkaException as refusal:
            failures.append(refusal)
        # Without a record librdkafka sends no EndTxn. A commit that failed may have sent EndTxn or not.
        ended_once = len(failures) == 1 and not was_committing and self._requests.results in ([], ["NO_ERROR"])
        # After a fatal error librdkafka begins no transaction. Mostly another process has the id, and shall keep it.
        self._may_end_late = not ended_once and not any(map(_is_fatal, failures))

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            if failure.args[0].code() in FENCED:
                raise Fenced(
                    f"{what} of {self._name}: another process has taken this id, or it was open for {TIMEOUT_S:.0f} s"
                ) from None
            raise translated(failure, f"{what} of {self._name}") from None


def _is_fatal(failure: BaseException) -> bool:
    if not isinstance(failure, KafkaException):
        return False
    error = failure.args[0]
    return error.fatal() or error.code() in (*FENCED, KafkaError._FATAL)


def _produce(
    producer: Producer, record: RecordFields, on_delivery: Callable[[KafkaError | None, Any], None] | None = None
) -> None:
    topic, value, key, headers, partition = record
    try:
        producer.produce(topic, value, key, partition, on_delivery, headers=headers)  # type: ignore[arg-type]
    except BufferError:
        again = partial(producer.produce, topic, value, key, partition, on_delivery, headers=headers)  # type: ignore[arg-type]
        produce_when_there_is_room(producer, again)
