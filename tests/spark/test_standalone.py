"""Beyond one machine: a standalone cluster whose executors have nothing of ours but what is sent, and Python."""

from __future__ import annotations

from pathlib import Path

from lastword.kafka.connection import Connection
from lastword.table import Table
from support.programs import run
from support.standalone import standalone

PROGRAM = """
import sys
from collections.abc import Iterator

import pyarrow

from lastword.kafka.connection import Connection
from lastword.spark import read_records, session

master, servers, topic = {arguments!r}
spark = session(
    Connection(bootstrap_servers=servers),
    master=master,
    settings={{"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2"}},
)


def decoded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import os

    from lastword.core.codecs import codec_named

    for batch in batches:
        keys = [codec_named("string").decode(key) for key in batch.column("key").to_pylist()]
        yield pyarrow.RecordBatch.from_pydict({{"key": keys, "worker": [os.getcwd()] * len(keys)}})


rows = read_records(spark, topic).select("key").mapInArrow(decoded, "key string, worker string").collect()
print(*sorted(row.key for row in rows))
print(*sorted({{row.worker for row in rows}}), sep="\\n")
"""


def test_a_topic_is_read_by_executors_that_fetch_the_jars_and_import_lastword(
    connection: Connection, users: Table, tmp_path: Path
) -> None:
    for number in range(30):
        users.put(f"user-{number:02}", {"number": number})

    with standalone(tmp_path) as master:
        program = PROGRAM.format(arguments=(master, connection.bootstrap_servers, users.topic))
        keys, *places = run(program, {}).splitlines()

    assert keys.split() == [f"user-{number:02}" for number in range(30)]
    assert places
    # Each executor has a folder of its own below its worker's, and the jars in it.
    for place in map(Path, places):
        assert place.is_relative_to(tmp_path)
        assert list(place.glob("*spark-sql-kafka*.jar")) != []
