"""The alternative to a rebuild: a plain loop that writes records to RocksDB as they come, a batch with its position.

    python -m benchmarks.alternatives.write_batches HOST:PORT TOPIC RECORDS FOLDER

Each 10,000 records become one WriteBatch: puts, deletes and the offsets reached. The write-ahead log is on, so a crash
loses nothing and tears no batch apart. The loop reads as `bare_consume` does, with the same client settings. Its store
has the options of lastword's store. The clock stops when everything is flushed to disk.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from rocksdict import Options, Rdict, WriteBatch

from benchmarks.alternatives.bare_consume import SETTINGS

BATCH = 10_000


def write_all(servers: str, topic: str, records: int, folder: str) -> tuple[float, int]:
    """Seconds from the assignment to the last record on disk, and how many rows there are."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    db = Rdict(folder, options, column_families={"rows": options, "places": options})
    rows = db.get_column_family_handle("rows")
    places = db.get_column_family_handle("places")
    consumer = Consumer({"bootstrap.servers": servers, **SETTINGS})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    left = records + len(partitions)
    began = time.perf_counter()
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    while left:
        head = consumer.poll(30)
        if head is None:
            sys.exit(f"no record came for 30 s: {left} records and ends of partitions are missing")
        messages = [head, *consumer.consume(BATCH - 1, 0)]
        left -= len(messages)
        db.write(_batch(messages, rows, places))
    db.get_column_family("rows").flush()
    db.get_column_family("places").flush()
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds, sum(1 for _ in db.get_column_family("rows").keys())  # noqa: SIM118  a family is no iterable


def _batch(messages: list[Any], rows: Any, places: Any) -> WriteBatch:
    batch = WriteBatch(raw_mode=True)
    reached = {}
    for message in messages:
        if message.error() is not None:
            continue  # the end of a partition
        value = message.value()
        if value is None:
            batch.delete(message.key(), rows)
        else:
            batch.put(message.key(), value, rows)
        reached[message.partition()] = message.offset() + 1
    for partition, offset in reached.items():
        batch.put(partition.to_bytes(4), offset.to_bytes(8), places)
    return batch


if __name__ == "__main__":
    _, servers, topic, records, folder = sys.argv
    seconds, live = write_all(servers, topic, int(records), folder)
    print(json.dumps({"seconds": seconds, "records": int(records), "rows": live}))
