"""Replicas against the law: what a replica shows beside what the reference fold makes of the committed records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lastword.core.codecs import codec_named
from lastword.core.fold import fold
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.core.row import row_of
from lastword.kafka.connection import Connection
from lastword.kafka.reading import read_log
from lastword.replica.replica import Replica
from lastword.table import Table


def replica_of(connection: Connection, topic: str, folder: Path, **settings: Any) -> Replica:
    """A replica with bytes as keys and JSON as values."""
    return Table(connection, topic, key="bytes", value="json").replica(folder, **settings)


def disagreements(replica: Replica, committed: Iterable[Record]) -> list[str]:
    """Where the replica is not the fold of the committed records before its position: the oracle of the replica."""
    records, position = list(committed), replica.position
    before = [r for r in records if r.key is not None and r.offset < position.get(r.partition, 0)]
    expected = [row_of(record, codec_named("bytes"), codec_named("json")) for _, record in sorted(fold(before).items())]
    newest = {(r.partition, r.key): r for r in sorted(before, key=lambda r: r.offset)}
    live = [record for record in newest.values() if record.value is not None]
    found = []
    if list(replica.scan()) != expected:
        found.append(f"rows {list(replica.scan())} are not {expected}")
    if [replica.row(row.key) for row in expected] != expected:
        found.append("point reads")
    if len(replica) != len(expected):
        found.append(f"count {len(replica)}, not {len(expected)}")
    if replica.split_keys != sum(count > 1 for count in Counter(record.key for record in live).values()):
        found.append(f"split keys {replica.split_keys}")
    if replica.poison_rows != sum(
        row_of(record, codec_named("bytes"), codec_named("json")).decode_error is not None for record in live
    ):
        found.append(f"poison rows {replica.poison_rows}")
    return found


def log_now(connection: Connection, topic: str, upto: Position | None = None) -> list[Record]:
    """The committed records that are in the log, up to a position if one is given."""
    return [record for batch in read_log(connection, topic, stop=upto) for record in batch]
