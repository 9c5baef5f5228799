"""Replicas compared with the reference fold of the committed records."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lastword.api.table import Table
from lastword.core.codecs import codec_named
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.core.row import row_of
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.replica.folder import ReplicaFolder
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
from lastword.replica.store.store import Store

# Kafka may remove tombstones half a second after their first cleaning.
QUICK = {"delete.retention.ms": "500", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.01"}


def replica_of(
    connection: Connection,
    topic: str,
    folder: Path,
    *,
    key: str = "bytes",
    wait: bool = True,
    steps: ReplicaSteps | None = None,
    **settings: Any,
) -> Replica:
    """A replica with JSON as values. Unlike `Table.replica`, it takes steps."""
    replica = Replica(
        connection,
        topic,
        folder,
        key_codec=codec_named(key),
        value_codec=codec_named("json"),
        settings=ReplicaSettings(**settings),
        steps=steps,
    )
    if wait:
        try:
            replica.wait_until_ready()
        except BaseException:
            replica.close()
            raise
    return replica


def killed_at(step: str, connection: Connection, topic: str, folder: Path) -> None:
    """Opens a replica in a process that is killed when it first calls a function, named like `OwnedStore.build`."""
    command = (sys.executable, "-c", _KILLED_AT_A_STEP, connection.bootstrap_servers, topic, str(folder), step)
    killed = subprocess.run(command, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr


_KILLED_AT_A_STEP = """\
import os, signal, sys, threading
from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
servers, topic, folder, step = sys.argv[1:]
def watch(frame, event, _):
    if event == "call" and frame.f_code.co_qualname == step:
        os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(watch)
threading.setprofile(watch)
Table(Connection(bootstrap_servers=servers), topic).replica(folder)
"""


def store_of(replica: Replica) -> Store:
    """The store that readers of the replica see now."""
    return replica._ask(lambda store: store)


def disagreements(replica: Replica, committed: Iterable[Record]) -> list[str]:
    """The differences of a replica from the fold of the committed records before its position: its oracle."""
    records, position = list(committed), replica.position
    before = [r for r in records if r.key is not None and r.offset < position.get(r.partition, 0)]
    expected = [row_of(record, codec_named("bytes"), codec_named("json")) for _, record in sorted(fold(before).items())]
    newest = {(r.partition, r.key): r for r in sorted(before, key=lambda r: r.offset)}
    live = [record for record in newest.values() if record.value is not None]
    differences = []
    if list(replica.scan()) != expected:
        differences.append(f"rows {list(replica.scan())} are not {expected}")
    if [replica.row(row.key) for row in expected] != expected:
        differences.append("point reads")
    if len(replica) != len(expected):
        differences.append(f"count {len(replica)}, not {len(expected)}")
    if replica.split_keys != sum(count > 1 for count in Counter(record.key for record in live).values()):
        differences.append(f"split keys {replica.split_keys}")
    if replica.poison_rows != sum(
        row_of(record, codec_named("bytes"), codec_named("json")).decode_error is not None for record in live
    ):
        differences.append(f"poison rows {replica.poison_rows}")
    return differences


def log_now(connection: Connection, topic: str, upto: Position | None = None) -> list[Record]:
    """The committed records in the log, up to `upto` if it is given."""
    return [record for batch in read_log(connection, topic, stop=upto) for record in batch]


def wait_until_caught_up(connection: Connection, replica: Replica) -> None:
    """Waits until the replica has read all records that are committed now."""
    replica.wait_for(log_bounds(connection, replica.topic)[1])


def make_table(
    connection: Connection, topic: str, settings: Mapping[str, str] | None = None, *, partitions: int = 1
) -> Table:
    create_topic(connection, topic, partitions=partitions, settings=settings or {})
    return Table(connection, topic)


def connection_to(cluster: LocalCluster) -> Connection:
    assert cluster.spec is not None
    return Connection(bootstrap_servers=cluster.spec.bootstrap_servers)


def write_rows(connection: Connection, topic: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Writes rows (partition, key, value[, timestamp]) one after the other."""
    producer = connection.producer(linger_ms=0)
    for partition, key, value, *timestamp in rows:
        options: dict[str, Any] = {"timestamp": timestamp[0]} if timestamp else {}
        producer.produce(topic, key=key, value=value, partition=partition, **options)
        assert producer.flush(10) == 0


def compact_tombstones_away(connection: Connection, topic: str, home: Path) -> None:
    """Compacts until no tombstone is left in the log."""
    compact_topic(connection, topic, home=home)
    assert [record.key for record in log_now(connection, topic) if record.is_tombstone] == []


def make_ghosts(connection: Connection, topic: str, home: Path, *keys: str) -> None:
    """Deletes the keys and compacts until their tombstones are gone."""
    with Table(connection, topic) as users:
        for key in keys:
            users.delete(key)
    compact_tombstones_away(connection, topic, home)
    time.sleep(0.7)


@contextmanager
def store_on_disk(folder: Path) -> Iterator[tuple[ReplicaFolder, Store]]:
    """The folder and the store of a closed replica, to read and to change."""
    replica_folder = ReplicaFolder(folder)
    try:
        assert replica_folder.current is not None
        store = Store(replica_folder.current, readable=lambda _: True)
        try:
            yield replica_folder, store
        finally:
            store.close()
    finally:
        replica_folder.close()


def recreate(connection: Connection, topic: str, rows: Sequence[tuple[Any, ...]]) -> None:
    delete_topic(connection, topic)
    create_topic(connection, topic, partitions=1)
    write_rows(connection, topic, rows)
