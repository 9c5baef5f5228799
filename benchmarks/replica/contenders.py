"""The contenders of a rebuild: lastword and the alternatives, each a process that must get every row."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.alternatives.environment import alternative_in
from benchmarks.input.topics import FilledTopic
from benchmarks.measuring.commands import alternative, python
from benchmarks.measuring.rounds import Run, run
from lastword.core.errors import LastwordError


@dataclass(frozen=True, kw_only=True)
class Contenders:
    """Each method is one run over a full topic. It starts from nothing and fails if the number of rows is wrong."""

    home: Path

    def lastword(self, filled: FilledTopic, memory_mb: int) -> Run:
        """Keeps its folder, because a restart opens that folder."""
        folder = self.replica_folder(filled)
        shutil.rmtree(folder, ignore_errors=True)
        return self.reopened(filled, memory_mb)

    def reopened(self, filled: FilledTopic, memory_mb: int) -> Run:
        folder = self.replica_folder(filled)
        return self._checked(
            filled, python("replica.process", *filled.address, str(folder), str(memory_mb)), "lastword"
        )

    def replica_folder(self, filled: FilledTopic) -> Path:
        return self.home / f"replica-of-{filled.topic}"

    def bare_loop(self, filled: FilledTopic) -> Run:
        return run(alternative("bare_consume", *filled.address, str(filled.records)), self.home)

    def write_batches(self, filled: FilledTopic) -> Run:
        def command(folder: Path) -> list[str]:
            return alternative("write_batches", *filled.address, str(filled.records), str(folder))

        return self._in_a_folder(filled, command, "the WriteBatch loop")

    def kafka_streams(self, filled: FilledTopic, streams: list[str]) -> Run:
        def command(folder: Path) -> list[str]:
            return [*streams, *filled.address, str(folder), _group()]

        return self._in_a_folder(filled, command, "Kafka Streams")

    def kafka_python(self, filled: FilledTopic, interpreter: Path) -> Run:
        command = alternative_in(interpreter, "kafka_python_dict", *filled.address, str(filled.records))
        return self._checked(filled, command, "kafka-python")

    def quix(self, filled: FilledTopic, interpreter: Path) -> Run:
        def command(folder: Path) -> list[str]:
            arguments = (*filled.address, str(filled.records), str(folder), _group())
            return alternative_in(interpreter, "quix_state", *arguments)

        return self._in_a_folder(filled, command, "Quix Streams")

    def _in_a_folder(self, filled: FilledTopic, command: Callable[[Path], list[str]], who: str) -> Run:
        folder = self.home / f"state-{uuid.uuid4().hex[:8]}"
        try:
            return self._checked(filled, command(folder), who)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _checked(self, filled: FilledTopic, command: list[str], who: str) -> Run:
        done = run(command, self.home)
        if done.answer["rows"] != filled.rows:
            raise LastwordError(f"benchmark: {who} has {done.answer['rows']} rows, the topic {filled.rows}")
        return done


def _group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"
