"""The worker processes of a build, and what the owner hears from them. No worker outlives its pool."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType

import msgspec

from lastword.core.errors import LastwordError
from lastword.replica.building.long_work import Stopped
from lastword.replica.building.tasks import (
    ERRORS,
    Failed,
    Folded,
    MergedRows,
    Passed,
    PassedRows,
    Split,
    Task,
    WorkerMessage,
)

_LOOK_S = 0.1


class SplitKeyFound(Exception):
    """A worker found a key with live rows in two partitions."""


class WorkerPool:
    def __init__(self, workers: int, topic: str, stopping: threading.Event) -> None:
        self._topic = topic
        self._stopping = stopping
        self._messages: queue.SimpleQueue[tuple[int, WorkerMessage]] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._listeners: list[threading.Thread] = []
        try:
            for number in range(workers):
                self._start(number)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._end()

    def results(
        self, tasks: Sequence[Task], passed: Callable[[int, Passed | PassedRows], None]
    ) -> list[Folded | MergedRows]:
        """The result of each task, at most one task for each worker; `passed` gets a task's number and its progress.

        Raises Stopped when the build is stopped, and SplitKeyFound as soon as a worker has found such a key.
        """
        for process, task in zip(self._processes, tasks, strict=False):
            assert process.stdin is not None  # noqa: S101
            # Its input stays open: the worker ends when this end of the pipe is closed. One that has ended is noticed
            # by its listener.
            with suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(task) + b"\n")
                process.stdin.flush()
        results: dict[int, Folded | MergedRows] = {}
        while len(results) < len(tasks):
            if self._stopping.is_set():
                raise Stopped
            try:
                number, message = self._messages.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            match message:
                case Passed() | PassedRows():
                    passed(number, message)
                case Folded() | MergedRows():
                    results[number] = message
                case Split():
                    raise SplitKeyFound
                case Failed(kind, text):
                    raise ERRORS[kind](text)
        return [results[number] for number in range(len(tasks))]

    def _start(self, number: int) -> None:
        # Never multiprocessing: it would import the user's program again, and rocksdict hangs after a fork.
        process = subprocess.Popen(
            # -P: no file of the current folder is taken for a module.
            [sys.executable, "-P", "-m", "lastword.replica.building.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C reaches the whole foreground group; ending is the owner's decision.
            process_group=0,
            umask=0o077,
        )
        self._processes.append(process)
        listener = threading.Thread(target=self._listen, args=(number, process), daemon=True)
        listener.start()
        self._listeners.append(listener)

    def _listen(self, number: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101
        for message in whole_messages(process.stdout):
            self._messages.put((number, message))
        # A worker ends only after its owner.
        status = process.wait()
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        text = f"a process that reads {self._topic} {how} in the middle of its work: free some memory if that was short"
        self._messages.put((number, Failed(LastwordError.__name__, f"{text}, and try again")))

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        for listener in self._listeners:
            listener.join()
        for process in self._processes:
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(BrokenPipeError):
                    pipe.close()


def whole_messages(lines: Iterable[bytes]) -> Iterator[WorkerMessage]:
    """The messages of a worker, without one that is cut off because the worker was killed while it wrote."""
    for line in lines:
        if line.endswith(b"\n"):
            yield msgspec.json.decode(line, type=WorkerMessage)
