"""Who rebuilds a table from its topic: lastword and the alternatives, each as a process that must get every row."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lastword.bench.environment import alternative_in
from lastword.bench.rounds import Run, alternative, fresh_topic, python, run
from lastword.bench.rows import distinct, updates
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import load

PARTITIONS = 4
RECORDS_PER_KEY = 10

# Or the cleaner might take records away between two rounds.
_UNCLEANED = {"min.compaction.lag.ms": str(24 * 60 * 60 * 1000)}


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A topic that is full and stays as it is: how many records, and how many rows they fold to."""

    connection: Connection
    topic: str
    records: int
    rows: int


@contextmanager
def updated_topic(connection: Connection, records: int) -> Iterator[Filled]:
    """Each key about ten times, with a few tombstones."""
    live = bytearray(max(1, records // RECORDS_PER_KEY))
    with _topic(connection) as topic:
        load(connection, topic, updates(records, live))
        yield Filled(connection=connection, topic=topic, records=records, rows=sum(live))


@contextmanager
def distinct_topic(connection: Connection, records: int) -> Iterator[Filled]:
    """Each key once."""
    with _topic(connection) as topic:
        load(connection, topic, distinct(records))
        yield Filled(connection=connection, topic=topic, records=records, rows=records)


@contextmanager
def _topic(connection: Connection) -> Iterator[str]:
    name = f"bench-replica-{uuid.uuid4().hex[:8]}"
    with fresh_topic(connection, name, partitions=PARTITIONS, settings=_UNCLEANED) as topic:
        yield topic


@dataclass(frozen=True, kw_only=True)
class Contenders:
    """Each method is one run over a full topic, from nothing; it fails unless the rows are as many as they must be."""

    home: Path

    def lastword(self, filled: Filled, memory_mb: int) -> Run:
        """Leaves its folder: the one that a restart opens."""
        folder = self.replica_folder(filled)
        shutil.rmtree(folder, ignore_errors=True)
        return self.reopened(filled, memory_mb)

    def reopened(self, filled: Filled, memory_mb: int) -> Run:
        folder = self.replica_folder(filled)
        return self._checked(
            filled, python("replica_process", *_address(filled), str(folder), str(memory_mb)), "lastword"
        )

    def replica_folder(self, filled: Filled) -> Path:
        return self.home / f"replica-of-{filled.topic}"

    def bare_loop(self, filled: Filled) -> Run:
        return run(alternative("bare_consume", *_address(filled), str(filled.records)), self.home)

    def write_batches(self, filled: Filled) -> Run:
        def command(folder: Path) -> list[str]:
            return alternative("write_batches", *_address(filled), str(filled.records), str(folder))

        return self._in_a_folder(filled, command, "the WriteBatch loop")

    def kafka_streams(self, filled: Filled, streams: list[str]) -> Run:
        def command(folder: Path) -> list[str]:
            return [*streams, *_address(filled), str(folder), _group()]

        return self._in_a_folder(filled, command, "Kafka Streams")

    def kafka_python(self, filled: Filled, interpreter: Path) -> Run:
        command = alternative_in(interpreter, "kafka_python_dict", *_address(filled), str(filled.records))
        return self._checked(filled, command, "kafka-python")

    def quix(self, filled: Filled, interpreter: Path) -> Run:
        def command(folder: Path) -> list[str]:
            words = (*_address(filled), str(filled.records), str(folder), _group())
            return alternative_in(interpreter, "quix_state", *words)

        return self._in_a_folder(filled, command, "Quix Streams")

    def _in_a_folder(self, filled: Filled, command: Callable[[Path], list[str]], who: str) -> Run:
        folder = self.home / f"state-{uuid.uuid4().hex[:8]}"
        try:
            return self._checked(filled, command(folder), who)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _checked(self, filled: Filled, command: list[str], who: str) -> Run:
        done = run(command, self.home)
        if done.answer["rows"] != filled.rows:
            raise LastwordError(f"benchmark: {who} has {done.answer['rows']} rows, the topic {filled.rows}")
        return done


def _address(filled: Filled) -> tuple[str, str]:
    return filled.connection.bootstrap_servers, filled.topic


def _group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"
