"""Writes through Kafka: the writes that a request asks for, and one writing thread for each table.

While one batch waits for its acknowledgements the next one gathers, so many requests share a round trip, and no request
has a thread of its own.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from lastword.core.codecs import Codec, readable_by
from lastword.core.errors import (
    BadInput,
    BadLine,
    ClusterUnreachable,
    LastwordError,
    NotEnoughReplicas,
    NotFound,
    TopicChanged,
)
from lastword.core.position import Position
from lastword.core.row_json import Write, write_of_json_line
from lastword.core.shapes.rows import WriteAnswer, WritesAnswer
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.writing import Ack, Writer, check_key
from lastword.serve.http.answers import Answer, Refused, json_answer, stopping
from lastword.serve.http.limits import Limits
from lastword.serve.tables.keys import check_length

_TOGETHER = 1000

Outcomes = list[Ack | LastwordError]


class _WriteJob(NamedTuple):
    writes: Sequence[Write]
    done: asyncio.Future[Outcomes]
    loop: asyncio.AbstractEventLoop


class Writes:
    """The writes of one table, to be closed. Each write tries again to reach a cluster that was away."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        waiting: int,
        expected_id: Callable[[], str | None] | None = None,
        patience_s: float = 30.0,
    ) -> None:
        """`expected_id` gives the id of the topic of the rows: writes to another topic of that name are refused."""
        self._connection = connection
        self._expected_id = expected_id
        self._patience_s = patience_s
        self._topic = topic
        self._jobs: queue.Queue[_WriteJob | None] = queue.Queue(waiting)
        self._writer: Writer | None = None
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=f"writes to {topic}", daemon=True)
        self._thread.start()

    async def send(self, writes: Sequence[Write]) -> Outcomes:
        """The outcome of each write, once all are known; Refused when too many wait already."""
        loop = asyncio.get_running_loop()
        job = _WriteJob(writes, loop.create_future(), loop)
        if self._is_stopping:
            raise stopping()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Refused("too_many_writes", "too many writes wait for the cluster") from None
        return await job.done

    def stop(self) -> None:
        """Takes no more writes and fails those that wait; those that were sent may still arrive."""
        self._is_stopping = True
        with suppress(queue.Full):
            self._jobs.put_nowait(None)

    def close(self, drain_s: float) -> None:
        """Waits up to the given time for outstanding writes, then fails them."""
        self.stop()
        self._thread.join(drain_s)
        if self._thread.is_alive() and self._writer is not None:
            self._writer.give_up()
            self._thread.join(drain_s)

    def _run(self) -> None:
        # Connect now: otherwise the first write takes half a second longer.
        with suppress(LastwordError):
            self._writer = self._opened()
        # A full queue has no room for the mark of a stop, so nothing waits for that mark.
        while not (self._is_stopping and self._jobs.empty()):
            jobs = self._waiting_jobs()
            outcomes = iter(self._written([write for each in jobs for write in each.writes]))
            for each in jobs:
                own_outcomes = [next(outcomes) for _ in each.writes]
                # The client may have left, and its event loop may be closed.
                with suppress(RuntimeError):
                    each.loop.call_soon_threadsafe(_tell, each.done, own_outcomes)

    def _opened(self) -> Writer:
        return Writer(self._connection, self._topic, patience_s=self._patience_s, expected_id=self._expected_id)

    def _waiting_jobs(self) -> list[_WriteJob]:
        """All jobs that have come, once there is one."""
        found = [self._jobs.get()]
        while len(found) < _TOGETHER and not self._jobs.empty():
            found.append(self._jobs.get_nowait())
        return [job for job in found if job is not None]

    def _written(self, writes: Sequence[Write]) -> Outcomes:
        if self._is_stopping:
            return [ClusterUnreachable("the server is being stopped")] * len(writes)
        try:
            if self._writer is None or self._writer.is_spent:
                self._writer = self._opened()
            return self._writer.write_all(writes)
        except LastwordError as failure:
            return [failure] * len(writes)
        except Exception as surprise:
            # The thread must keep running: otherwise every later write would wait for ever.
            return [LastwordError(f"{type(surprise).__name__}: {surprise}")] * len(writes)


def put_of(key: bytes, body: bytes, key_codec: Codec, codec: Codec) -> Write:
    """The write of a value, given as the JSON in which a row shows it."""
    try:
        key_codec.checked_key(key)
    except BadInput as refusal:
        raise Refused("bad_key", str(refusal), "DELETE accepts such a key, to remove an existing row") from None
    try:
        # The codec json gives its input back unchecked, so it is checked here.
        value = codec.to_json(body) if codec.name == "json" else codec.from_json(body)
    except BadInput as refusal:
        raise Refused("bad_value", str(refusal)) from None
    if not readable_by(codec)(value):
        raise Refused("bad_value", "the codec can't read this value back: is a number out of range?")
    return Write(_checked(key), value)


def delete_of(key: bytes) -> Write:
    return Write(_checked(key), None)


def writes_of(body: bytes, key_codec: Codec, value_codec: Codec, limits: Limits) -> list[Write]:
    """The writes of JSON lines; Refused as a whole for a mistake in one line, before anything is written."""
    try:
        found = [
            write_of_json_line(line, number, key_codec, value_codec)
            for number, line in enumerate(body.split(b"\n"), 1)
            if line.strip()
        ]
    except BadLine as refusal:
        raise Refused(
            "bad_line",
            str(refusal),
        ) from None
    for write in found:
        check_length(_checked(write.key), limits)
    return found


def single_answer(outcomes: Outcomes) -> Answer:
    """The offset and the position of a write; Refused when it was not acknowledged."""
    (ack,) = _acknowledged(outcomes)
    return json_answer(WriteAnswer(ack.partition, ack.offset, str(ack.position)))


def lines_answer(outcomes: Outcomes) -> Answer:
    """The number of writes and a position after all of them; Refused when one was not acknowledged."""
    acks = _acknowledged(outcomes)
    ends: dict[int, int] = {}
    for ack in acks:
        ends[ack.partition] = max(ends.get(ack.partition, 0), ack.offset + 1)
    return json_answer(WritesAnswer(len(acks), str(Position(ends))))


def _acknowledged(outcomes: Outcomes) -> list[Ack]:
    acks = [each for each in outcomes if isinstance(each, Ack)]
    failure = next((each for each in outcomes if not isinstance(each, Ack)), None)
    if failure is not None:
        raise _not_acknowledged(failure, len(acks), len(outcomes))
    return acks


def _not_acknowledged(failure: LastwordError, done: int, of: int) -> Refused:
    # The failure's own message names commands and addresses, which only the server's owner may see.
    count = f"{done} of {of} writes were acknowledged" if of > 1 else "the write was not acknowledged"
    if isinstance(failure, BadInput):
        return Refused("value_too_large", f"{count}: larger than the topic's max.message.bytes")
    if isinstance(failure, NotEnoughReplicas):
        message = f"{count}: NotEnoughReplicas: fewer replicas are in sync than the topic's min.insync.replicas"
        return Refused("not_enough_replicas", message)
    if isinstance(failure, NotFound | TopicChanged):
        became = "deleted" if isinstance(failure, NotFound) else "deleted, and another may be there under its name"
        return Refused("topic_changed", f"{count}: the topic of this table was {became}")
    if isinstance(failure, ClusterUnreachable):
        hint = "read the row to see whether it was written, or send the write again: that does no harm"
        return Refused("cluster_unreachable", f"{count}: no answer from the cluster in time", hint)
    return Refused("write_failed", f"{count}: the cluster refused it")


def _checked(key: bytes) -> bytes:
    try:
        check_key(key)
    except BadInput as refusal:
        raise Refused("bad_key", str(refusal), "choose another key") from None
    return key


def _tell(done: asyncio.Future[Outcomes], outcomes: Outcomes) -> None:
    if not done.done():
        done.set_result(outcomes)
