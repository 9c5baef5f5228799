"""The pipeline as `lastword run` runs it, in a process that ends by itself.

    python -m benchmarks.pipeline.process FILE HOST:PORT JARS MASTER USERS

The process ends when the tables in Kafka have counted USERS users, or at SIGTERM if USERS is 0. It prints JSON: the
seconds from the first read to the last commit (without the start of Spark and the takeover), and, every two seconds,
the milliseconds of the latest batch.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import follow, log_bounds
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.plan.plan_file import read_plan
from lastword.pipeline.running.driver import PipelineRun
from lastword.spark import stop
from lastword.spark.session.session import session


class Throughput:
    """The time from the takeover of a pipeline until its table has counted all users."""

    def __init__(self, connection: Connection, plan: Pipeline, users: int) -> None:
        self._connection = connection
        self._plan = plan
        self._users = users
        self.began: float | None = None
        self.ended: float | None = None

    def on_event(self, event: str) -> None:
        """The first event is the takeover, after which the source is read. Any other event is a failure."""
        if self.began is not None:
            print(event, file=sys.stderr, flush=True)
            return
        self.began = time.monotonic()

    def end_with(self, pipeline: PipelineRun) -> None:
        """Stops the pipeline when every row of the first table has counted all users."""
        topic, counted = self._plan.tables[0].topic, {rule.name: 0 for rule in self._plan.rules}
        first, _ = log_bounds(self._connection, topic)
        for records in follow(self._connection, topic, start=first):
            for record in records:
                row = json.loads(record.value or b"{}")
                counted[row["team"]] = row["processed"]
            if min(counted.values()) >= self._users:
                self.ended = time.monotonic()
                break
        pipeline.stop()


def measured(file: str, connection: Connection, jars: Path, master: str, users: int) -> dict[str, Any]:
    plan = read_plan(file).pipeline
    spark = session(connection, master=master, jars=jars, settings={"spark.log.level": "OFF"})
    watch, batches = Throughput(connection, plan, users), list[float]()

    def add_batch(row: PipelineStatus) -> None:
        if row.batch.records:
            batches.append(row.batch.seconds * 1000)

    pipeline = PipelineRun(spark, plan, on_event=watch.on_event, on_status=add_batch)
    signal.signal(signal.SIGTERM, lambda *_: pipeline.stop())
    if users:
        threading.Thread(target=watch.end_with, args=(pipeline,), daemon=True).start()
    pipeline.run()
    seconds = None if watch.began is None or watch.ended is None else watch.ended - watch.began
    stop(spark)
    return {"seconds": seconds, "batches_ms": batches}


if __name__ == "__main__":
    _, file, servers, jars, master, users = sys.argv
    print(json.dumps(measured(file, Connection(bootstrap_servers=servers), Path(jars), master, int(users))))
