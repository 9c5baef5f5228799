"""Tasks of a pipeline that go wrong on purpose, in the workers of Spark, at their first attempt."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow
from pyspark import TaskContext

from lastword.core.errors import Fenced
from lastword.pipeline.task import CommitTask


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
    """Two attempts beside each other over the same records; what becomes of the second one is not reported."""

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        rows = list(batches)
        if not _is_first_attempt():
            yield from super().__call__(iter(rows))
            return
        other = threading.Thread(target=self._attempt, args=(rows,))
        other.start()
        try:
            yield from super().__call__(iter(rows))
        finally:
            other.join()

    def _attempt(self, rows: list[pyarrow.RecordBatch]) -> None:
        # The other one may take the id from it.
        with suppress(Fenced):
            list(CommitTask.__call__(self, iter(rows)))


def _is_first_attempt() -> bool:
    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0
