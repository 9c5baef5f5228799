"""An EndTxn that was sent twice and arrives late: it may end the next transaction, unless the producer is another one.

LASTWORD_SOAK says how many times twenty (three without it).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

import pytest
from confluent_kafka import KafkaException

from lastword.core.errors import ClusterUnreachable, Fenced, LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.kafka.topics.topic_changes import create_topic
from support.compacted_logs import has_open_transaction
from support.endtxn_proxy import END_TXN, INIT_PRODUCER_ID, PRODUCE, EndTxnProxy
from support.waiting import eventually

pytestmark = pytest.mark.open

RUNS = range(20 * int(os.environ.get("LASTWORD_SOAK", "0")) or 3)

NO_ERROR, INVALID_PRODUCER_EPOCH = 0, 47


class PlainProducer:
    """Transactions as librdkafka's manual shows them: nobody asks how often EndTxn was sent."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._producer = connection.producer(transactional_id=name, retry_backoff_ms=20)
        self._producer.init_transactions(30)

    def write(self, records: Iterator[OutgoingRecord], last: OutgoingRecord) -> None:
        self._producer.begin_transaction()
        try:
            for record in records:
                self._produce(record)
            self._produce(last)
            self._producer.commit_transaction(30)
        except BaseException:
            with suppress(KafkaException):
                self._producer.abort_transaction(30)
            raise

    def close(self) -> None:
        with suppress(KafkaException, SystemError):
            self._producer.close()

    def _produce(self, record: OutgoingRecord) -> None:
        self._producer.produce(record.topic, record.value, record.key, record.partition)


class Interrupted(Exception):
    pass


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=2)
    return topic_name


@pytest.fixture
def proxy(connection: Connection) -> Iterator[EndTxnProxy]:
    with EndTxnProxy(connection) as made:
        yield made


def row(topic: str, key: str, value: str) -> OutgoingRecord:
    return OutgoingRecord(topic, value.encode(), key.encode(), partition={"a": 0, "b": 1}[key])


def committed(connection: Connection, topic: str) -> list[tuple[str, str]]:
    """Keys and values as a reader of committed data sees them, in order of the keys."""
    eventually(lambda: not has_open_transaction(connection, topic))
    records = [record for batch in read_log(connection, topic) for record in batch]
    return sorted(((record.key or b"").decode(), (record.value or b"").decode()) for record in records)


def half(proxy: EndTxnProxy, record: OutgoingRecord, then: Callable[[], None]) -> Iterator[OutgoingRecord]:
    """One record, and what is done when the broker has it and the transaction goes on."""
    produced = proxy.answered[PRODUCE]
    yield record
    proxy.wait_for_records_after(produced)
    then()


def write_with_a_late_end(proxy: EndTxnProxy, writer: PlainProducer | Transactions, topic: str, run: int) -> int:
    """A transaction that is committed by the second EndTxn, and one that is broken off after the first has arrived.

    The broker's error code for the late EndTxn.
    """
    codes: list[int] = []

    def deliver_and_break_off() -> None:
        codes.append(proxy.deliver_held_end())
        raise Interrupted

    proxy.hold_next_end()
    writer.write(iter([row(topic, "a", f"{run} whole")]), row(topic, "b", f"{run} whole"))
    with pytest.raises(Interrupted):
        writer.write(half(proxy, row(topic, "a", f"{run} half"), deliver_and_break_off), row(topic, "b", f"{run} half"))
    return codes[0]


@pytest.mark.soak
def test_a_late_end_commits_half_of_the_next_transaction_of_a_plain_producer(
    connection: Connection, proxy: EndTxnProxy, topic: str
) -> None:
    for run in RUNS:
        writer = PlainProducer(proxy.connection, f"{topic}-{run}")
        assert write_with_a_late_end(proxy, writer, topic, run) == NO_ERROR
        writer.close()

    halves = {("a", f"{run} half") for run in RUNS}
    wholes = {(key, f"{run} whole") for key in "ab" for run in RUNS}
    assert committed(connection, topic) == sorted(halves | wholes)


@pytest.mark.soak
def test_a_late_end_is_refused_because_the_next_transaction_has_another_producer(
    connection: Connection, proxy: EndTxnProxy, topic: str
) -> None:
    for run in RUNS:
        writer = Transactions(proxy.connection, f"{topic}-{run}")
        assert write_with_a_late_end(proxy, writer, topic, run) == INVALID_PRODUCER_EPOCH
        writer.write([row(topic, "a", f"{run} after")], row(topic, "b", f"{run} after"))
        writer.close()

    assert committed(connection, topic) == sorted(
        (key, f"{run} {what}") for key in "ab" for run in RUNS for what in ("whole", "after")
    )


def test_a_late_abort_does_not_end_the_next_transaction(connection: Connection, proxy: EndTxnProxy, topic: str) -> None:
    writer = Transactions(proxy.connection, topic)
    codes: list[int] = []

    def break_off() -> None:
        raise Interrupted

    proxy.hold_next_end()
    with pytest.raises(Interrupted):
        writer.write(half(proxy, row(topic, "a", "half"), break_off), row(topic, "b", "half"))
    late = half(proxy, row(topic, "a", "whole"), lambda: codes.append(proxy.deliver_held_end()))
    writer.write(late, row(topic, "b", "whole"))
    writer.close()

    assert codes == [INVALID_PRODUCER_EPOCH]
    assert committed(connection, topic) == [("a", "whole"), ("b", "whole")]


def test_a_producer_is_kept_while_each_end_is_sent_once(proxy: EndTxnProxy, topic: str) -> None:
    writer = Transactions(proxy.connection, topic)
    for number in range(10):
        writer.write([row(topic, "a", f"{number}")], row(topic, "b", f"{number}"))
    with pytest.raises(TypeError):
        writer.write([], OutgoingRecord(topic, 5, b"b"))  # type: ignore[arg-type]
    writer.write([], row(topic, "b", "last"))
    writer.close()

    assert (proxy.asked[INIT_PRODUCER_ID], proxy.asked[END_TXN]) == (1, 11)


def test_an_id_that_another_process_took_after_a_doubtful_end_is_not_used_again(
    connection: Connection, proxy: EndTxnProxy, topic: str
) -> None:
    former = Transactions(proxy.connection, topic)
    proxy.hold_next_end()
    former.write([], row(topic, "a", "1"))
    holder = Transactions(connection, topic)
    holder.write([], row(topic, "a", "2"))

    for value in ("3", "4"):
        with pytest.raises(Fenced, match=f"a transaction of {topic}: another process"):
            former.write([], row(topic, "a", value))
    former.close()
    holder.close()

    assert committed(connection, topic) == [("a", "1"), ("a", "2")]


def test_an_id_that_another_process_took_during_a_transaction_stays_with_it(
    connection: Connection, proxy: EndTxnProxy, topic: str
) -> None:
    former = Transactions(proxy.connection, topic)
    holders: list[Transactions] = []

    def lose_the_id_and_break_off() -> None:
        holders.append(Transactions(connection, topic))
        raise Interrupted

    with pytest.raises(Interrupted):
        former.write(half(proxy, row(topic, "a", "1"), lose_the_id_and_break_off), row(topic, "b", "1"))
    with pytest.raises(LastwordError):
        former.write([], row(topic, "a", "2"))
    holders[0].write([], row(topic, "a", "3"))
    former.close()
    holders[0].close()

    assert committed(connection, topic) == [("a", "3")]


def test_whoever_closes_with_a_transaction_that_could_not_be_ended_does_not_wait_for_the_cluster(
    proxy: EndTxnProxy, topic: str
) -> None:
    writer = Transactions(proxy.connection, topic)
    closing = Thread(target=writer.close, daemon=True)

    def break_off() -> None:
        raise Interrupted

    proxy.hold_next_end()
    with proxy.away():
        with pytest.raises(Interrupted):
            writer.write(half(proxy, row(topic, "a", "half"), break_off), row(topic, "b", "half"))
        closing.start()
        closing.join(60)
        assert not closing.is_alive()


def test_a_producer_that_could_not_be_replaced_is_replaced_when_the_cluster_is_back(
    connection: Connection, proxy: EndTxnProxy, topic: str
) -> None:
    writer = Transactions(proxy.connection, topic)
    proxy.hold_next_end()
    writer.write([], row(topic, "a", "1"))
    with proxy.away(), pytest.raises(ClusterUnreachable):
        writer.write([], row(topic, "a", "2"))
    writer.write([], row(topic, "a", "3"))
    writer.close()

    assert proxy.deliver_held_end() == INVALID_PRODUCER_EPOCH
    assert committed(connection, topic) == [("a", "1"), ("a", "3")]
