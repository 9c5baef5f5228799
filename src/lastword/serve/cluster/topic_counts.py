"""Counts the records of requested topics: one topic at a time, in a thread, with pauses."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue

from lastword.core.clock import now_ms
from lastword.core.errors import ClusterUnreachable, LastwordError, NotFound
from lastword.kafka.client.bounded_read import Progress
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_description import TopicDescription
from lastword.kafka.topics.topic_scan import TopicScan, scan_topic
from lastword.processes.background_loop import BackgroundLoop
from lastword.serve.http.answers import public_message

# A count keeps every key in memory, and takes CPU time from requests.
MOST_RECORDS = 2_000_000
MOST_BYTES = 2**30
_AGAIN_S = 30.0
# The most of the time that counting may take: after a long count the pause is long.
_SHARE = 0.1
_MOST_KEPT = 200
_PATIENCE_S = 3.0
# How long a stop waits for the thread, which ends with the process at the latest.
_STOP_S = 5.0
BEING_COUNTED = "being counted"
_FAILED = "counting failed: see the server's log"

_log = logging.getLogger(__name__)

# A value that changes when records come or go.
_Mark = tuple[tuple[int | None, int | None, int | None], ...]


class _CountStopped(Exception):
    pass


class _TooMuch(Exception):
    pass


@dataclass(frozen=True, kw_only=True)
class TopicCount:
    """The result of a count, and the reason why there is none, or no newer one."""

    at: int
    scan: TopicScan | None
    why: str | None


@dataclass(frozen=True, kw_only=True)
class _Kept:
    counted: TopicCount
    topic_id: str
    mark: _Mark
    next_s: float


class Counting:
    """Asked from any thread."""

    def __init__(
        self,
        connection: Connection,
        *,
        scan: Callable[[Connection, str, Progress], TopicScan] = scan_topic,
        most_records: int = MOST_RECORDS,
        stop_s: float = _STOP_S,
    ) -> None:
        self._scan = scan
        self._most_records = most_records
        self._stop_s = stop_s
        # A cluster that hangs must not hold up a stop for long.
        self._connection = replace(connection, patience_s=min(_PATIENCE_S, connection.patience_s))
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        # In the order of counting; the first is being counted.
        self._wanted: list[str] = []
        # Whether the topic has changed while it is being counted.
        self._is_outdated = False
        # None after the stop.
        self._queue: SimpleQueue[TopicDescription | None] = SimpleQueue()
        self._loop = BackgroundLoop("counting", self._run)

    def of(self, topic: TopicDescription) -> tuple[TopicCount | None, str | None]:
        """The last count of a topic, and why there is no newer one; a topic that has changed is counted again."""
        with self._lock:
            kept = self._kept.get(topic.name)
            if kept is not None and kept.topic_id != topic.topic_id:
                # The topic was created again: the old count is of another topic.
                del self._kept[topic.name]
                kept = None
            counted = None if kept is None or kept.counted.scan is None else kept.counted
            if (too_much := too_much_to_read(topic, self._most_records)) is not None:
                return counted, _not_read(topic.name, too_much)
            is_due = kept is None or (kept.mark != _mark(topic) and time.monotonic() >= kept.next_s)
            if is_due and topic.name not in self._wanted and not self._loop.is_stopping:
                self._want(topic)
            if counted is not None:
                return counted, counted.why
            return None, kept.counted.why if kept is not None else self._why_waiting(topic.name)

    def known(self, name: str) -> TopicScan | None:
        """The last count, however old."""
        kept = self._kept.get(name)
        return None if kept is None else kept.counted.scan

    def again(self, name: str) -> None:
        """The topic has changed: the next request has it counted again."""
        with self._lock:
            if (kept := self._kept.get(name)) is not None:
                self._kept[name] = replace(kept, mark=(), next_s=0.0)
            if self._wanted[:1] == [name]:
                self._is_outdated = True

    def close(self) -> None:
        with self._lock:
            self._loop.ask_to_stop()
        self._queue.put(None)
        self._loop.stop(self._stop_s)

    def _want(self, topic: TopicDescription) -> None:
        if not self._loop.is_started:
            self._loop.start()
        self._wanted.append(topic.name)
        self._queue.put(topic)

    def _run(self) -> None:
        while (topic := self._queue.get()) is not None and not self._loop.is_stopping:
            self._count(topic)

    def _why_waiting(self, name: str) -> str:
        if not self._wanted or self._wanted[0] == name:
            return BEING_COUNTED
        return f"waits to be counted: {self._wanted[0]} is counted first"

    def _count(self, topic: TopicDescription) -> None:
        began_s, at = time.monotonic(), now_ms()
        scan, why = None, None
        try:
            scan = self._scan(self._connection, topic.name, self._check_wanted)
        except _CountStopped:
            return
        except _TooMuch:
            why = _not_read(topic.name, _more_records_than(self._most_records))
        except ClusterUnreachable:
            why = "no cluster answers: the topic is counted once the cluster is back"
        except NotFound:
            why = "the topic is gone"
        except LastwordError as failure:
            why = public_message(str(failure), self._connection.bootstrap_servers, _FAILED)
        except Exception:
            _log.exception("counting %s failed", topic.name)
            why = _FAILED
        ended_s = time.monotonic()
        next_s = ended_s + max(_AGAIN_S, (ended_s - began_s) / _SHARE)
        counted = TopicCount(at=at, scan=scan, why=why)
        with self._lock:
            self._wanted.remove(topic.name)
            before = self._kept.pop(topic.name, None)
            if scan is None and before is not None and before.topic_id == topic.topic_id:
                # An older count is better than none.
                counted = replace(before.counted, why=why)
            # A failed count is tried again later, even if the topic has not changed.
            mark = () if scan is None else _mark(topic)
            if self._is_outdated:
                self._is_outdated, mark, next_s = False, (), 0.0
            self._kept[topic.name] = _Kept(counted=counted, topic_id=topic.topic_id, mark=mark, next_s=next_s)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def _check_wanted(self, _done: int, total: int) -> None:
        if self._loop.is_stopping:
            raise _CountStopped
        # The topic has grown, or its size was not known before: a partition had no leader, say.
        if total > self._most_records:
            raise _TooMuch


def too_much_to_read(topic: TopicDescription, most_records: int = MOST_RECORDS) -> str | None:
    """`more than 2,000,000 records`; None for a topic that is small enough to count."""
    records, size = topic.start_to_end, topic.bytes_on_disk
    if records is not None and records > most_records:
        return _more_records_than(most_records)
    return f"more than {MOST_BYTES >> 20:,} MiB" if size is not None and size > MOST_BYTES else None


def _more_records_than(most_records: int) -> str:
    return f"more than {most_records:,} records"


def _not_read(name: str, too_much: str) -> str:
    return f"{too_much} to read:  lastword topic describe {name} --scan  counts them"


def _mark(topic: TopicDescription) -> _Mark:
    return tuple((each.start_offset, each.stable_offset, each.bytes_on_disk) for each in topic.partitions)
