"""The counts of a topic's log, for each partition: records, keys, tombstones, and keys outside their own partition."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.core.key_partition import partition_of
from lastword.kafka.client.bounded_read import Progress
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.kafka.topics.topic_description import TopicDescription


@dataclass(frozen=True, kw_only=True)
class PartitionScan:
    partition: int
    records: int
    # Keys with at least one record, deleted ones included.
    keys: int
    # Keys whose newest record is not a tombstone.
    live_keys: int
    tombstones: int
    # Keys that murmur2 would have put elsewhere: another partitioner wrote them, or partitions were added since.
    strayed_keys: int


@dataclass(frozen=True, kw_only=True)
class TopicScan:
    partitions: tuple[PartitionScan, ...]

    @property
    def evenness(self) -> float | None:
        """The keys of the emptiest partition as a share of the fullest one's: 1.0 is even; None without keys."""
        counts = sorted(scan.keys for scan in self.partitions)
        return counts[0] / counts[-1] if counts and counts[-1] else None

    @property
    def strayed_keys(self) -> int:
        return sum(scan.strayed_keys for scan in self.partitions)


@dataclass(frozen=True, kw_only=True)
class ScannedTopic(TopicDescription):
    """All about one topic; `scan` is None if the log was not read."""

    scan: TopicScan | None


def scan_topic(connection: Connection, topic: str, progress: Progress | None = None) -> TopicScan:
    """Reads the whole log once, keeping only its keys in memory."""
    count = len(connection.topic(topic).partitions)
    live: list[dict[bytes, bool]] = [{} for _ in range(count)]
    records, tombstones = [0] * count, [0] * count
    for batch in read_log(connection, topic, progress=progress):
        for record in batch:
            records[record.partition] += 1
            tombstones[record.partition] += record.is_tombstone
            if record.key is not None:
                live[record.partition][record.key] = not record.is_tombstone
    return TopicScan(
        partitions=tuple(
            PartitionScan(
                partition=p,
                records=records[p],
                keys=len(live[p]),
                live_keys=sum(live[p].values()),
                tombstones=tombstones[p],
                strayed_keys=sum(partition_of(key, count) != p for key in live[p]),
            )
            for p in range(count)
        )
    )
