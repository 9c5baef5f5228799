"""What a task of the pipeline asks of Kafka beside reading and writing, each step by itself on a cluster at rest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.input.topics import fresh_topic
from benchmarks.pipeline.topics import Topics
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.pipeline.running.progress import PartitionProgress, newest_progress, progress_record, transactional_id

TAKING, READING, COMMITTING = "taking the id", "reading the progress", "a transaction of 10 records"
_TIMES = 20
_ACTIONS = 10
_PAUSE_S = 0.1


def task_costs_ms(topics: Topics) -> dict[str, float]:
    """The medians, in the order in which a task does it."""
    spent: dict[str, list[float]] = {TAKING: [], READING: [], COMMITTING: []}
    known: int | None = None

    @contextmanager
    def timed(what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        spent[what].append((time.monotonic() - began) * 1000)

    progress = PartitionProgress(next_offset=0, source_id="", generation=1, owner="")
    action = OutgoingRecord(topics.actions, b'{"team": "team-1"}')
    with fresh_topic(topics.connection, topics.changelog, partitions=1):
        record = progress_record(topics.changelog, 0, progress)
        for _ in range(_TIMES):
            with timed(TAKING):
                transactions = Transactions(topics.connection, transactional_id(topics.app, 0))
            with timed(READING):
                newest_progress(topics.connection, topics.changelog, 0, start=known)
            with timed(COMMITTING):
                known = transactions.write([action] * _ACTIONS, record)
            transactions.close()
            time.sleep(_PAUSE_S)
    return {what: median(times) for what, times in spent.items()}
