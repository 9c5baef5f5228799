"""What a task of the pipeline needs from Kafka besides reading and writing: each step alone, on a cluster at rest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.input.topics import fresh_topic
from benchmarks.pipeline.topics import PipelineTopics
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.pipeline.running.progress import PartitionProgress, newest_progress, progress_record, transactional_id

TAKING, READING, COMMITTING = "taking the id", "reading the progress", "a transaction of 10 records"
_TIMES = 20
_ACTIONS = 10
_PAUSE_S = 0.1


def task_costs_ms(topics: PipelineTopics) -> dict[str, float]:
    """The median of each step, in the order of a task."""
    spent: dict[str, list[float]] = {TAKING: [], READING: [], COMMITTING: []}
    committed: int | None = None

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        spent[step].append((time.monotonic() - began) * 1000)

    progress = PartitionProgress(next_offset=0, source_id="", generation=1, owner="")
    action = OutgoingRecord(topics.actions, b'{"team": "team-1"}')
    with fresh_topic(topics.connection, topics.changelog, partitions=1):
        record = progress_record(topics.changelog, 0, progress)
        for _ in range(_TIMES):
            with timed(TAKING):
                transactions = Transactions(topics.connection, transactional_id(topics.app, 0))
            with timed(READING):
                newest_progress(topics.connection, topics.changelog, 0, start=committed)
            with timed(COMMITTING):
                committed = transactions.write([action] * _ACTIONS, record)
            transactions.close()
            time.sleep(_PAUSE_S)
    return {step: median(times) for step, times in spent.items()}
