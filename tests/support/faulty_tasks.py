"""Tasks of a pipeline that fail on purpose at their first attempt, in the workers of Spark."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow
from pyspark import TaskContext

from lastword.core.errors import Fenced
from lastword.pipeline.running.commit_task import CommitTask
from lastword.pipeline.running.source import Shares, SourceTask, shares_of_task


@dataclass(frozen=True, kw_only=True)
class LosesItsReport(CommitTask):
    """Fails after its commit and before its report."""

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        reports = list(super().__call__(batches))
        if reports and _is_first_attempt():
            raise RuntimeError("the report is lost")
        yield from reports


@dataclass(frozen=True, kw_only=True)
class RunsTwice(CommitTask):
    """Two attempts at the same time over the same records; the second one reports nothing."""

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        rows = list(batches)
        if not _is_first_attempt():
            yield from super().__call__(iter(rows))
            return
        ended: list[BaseException | None] = []
        other = threading.Thread(target=self._attempt, args=(rows, shares_of_task(), ended))
        other.start()
        try:
            yield from super().__call__(iter(rows))
        finally:
            other.join()
        # The other attempt may take its transactional id; no other error may end it.
        if not isinstance(ended[0], Fenced | None):
            raise ended[0]

    def _attempt(self, rows: list[pyarrow.RecordBatch], shares: Shares, ended: list[BaseException | None]) -> None:
        try:
            list(self.results(shares, iter(rows)))
            ended.append(None)
        except BaseException as failure:
            ended.append(failure)


_PASSED_ON = 5000


@dataclass(frozen=True, kw_only=True)
class BreaksOff(SourceTask):
    """A reader that fails after Spark has passed on some of its records."""

    def __call__(self, numbers: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        if not _is_first_attempt():
            yield from super().__call__(numbers)
            return
        passed_on = 0
        for records in super().__call__(numbers):
            passed_on += records.num_rows
            yield records
            # Spark passes on whole buffers.
            if passed_on >= _PASSED_ON:
                time.sleep(0.5)
                self._fail()

    def _fail(self) -> None:
        raise RuntimeError("the reader fails")


@dataclass(frozen=True, kw_only=True)
class IsKilled(BreaksOff):
    def _fail(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def _is_first_attempt() -> bool:
    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0
