"""One topic over HTTP: its partitions, its settings, its last count, and an hour of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lastword.core.errors import LastwordError
from lastword.core.shapes.topics import PartitionStatus, TopicCensus, TopicSetting
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
from lastword.kafka.topics.topic_description import PartitionDescription, TopicDescription
from lastword.kafka.topics.topic_scan import PartitionScan, TopicScan
from lastword.serve.cluster.topic_counts import TopicCount
from lastword.serve.tables.served_table import ServedTable


class RecordCounts(NamedTuple):
    """Each record is the last word of its key, a value or a tombstone, or it is obsolete.

    That is so where the cleaner compacts: elsewhere an older record, or one without a key, is as good as any.
    """

    records: int | None = None
    live_keys: int | None = None
    tombstones: int | None = None
    obsolete: int | None = None


def cleanup_policy(topic: TopicDescription) -> str | None:
    """None while the settings of the topic are not known."""
    policy = topic.cleanup_policy
    return None if policy is None else policy.text


def is_compacted(topic: TopicDescription) -> bool | None:
    """Whether Kafka's cleaner compacts the topic; None while its settings are not known."""
    policy = topic.cleanup_policy
    return None if policy is None else policy.compacts


def settings_of(topic: TopicDescription) -> dict[str, TopicSetting] | None:
    """The settings about compaction, and those that were set for the topic; None while they are not known."""
    if not topic.settings:
        return None
    return {
        name: TopicSetting(now.value, now.comes_from)
        for name, now in topic.settings.items()
        if name in TOPIC_SETTINGS or now.comes_from != "default"
    }


def partitions_of(topic: TopicDescription, scan: TopicScan | None) -> list[PartitionStatus]:
    scans = {} if scan is None else {each.partition: each for each in scan.partitions}
    compacts = is_compacted(topic) is True
    return [_partition(each, scans.get(each.partition), compacts=compacts) for each in topic.partitions]


def census_of(topic: TopicDescription, counted: TopicCount | None) -> TopicCensus | None:
    """The result of the last count; None when there was none."""
    if counted is None or counted.scan is None:
        return None
    compacts = is_compacted(topic) is True
    counts = _counted(counted.scan.partitions, compacts=compacts)
    return TopicCensus(
        at=counted.at,
        **counts._asdict(),
        obsolete_share=_share(counts.obsolete, counts.records),
        duplicate_factor=_share(counts.records, counts.live_keys) if compacts else None,
        tombstone_share=_share(counts.tombstones, counts.records),
    )


def rows_of(table: ServedTable) -> int | None:
    """How many rows the table has; None while the table can't be read."""
    try:
        return table.ask(len)
    except LastwordError:
        return None


def _partition(described: PartitionDescription, scan: PartitionScan | None, *, compacts: bool) -> PartitionStatus:
    counts = RecordCounts() if scan is None else _counted([scan], compacts=compacts)
    return PartitionStatus(
        partition=described.partition,
        leader=described.leader,
        replicas=list(described.replicas),
        in_sync=list(described.in_sync),
        start=described.start_offset,
        end=described.end_offset,
        stable=described.stable_offset,
        bytes=described.bytes_on_disk,
        **counts._asdict(),
    )


def _counted(scans: Sequence[PartitionScan], *, compacts: bool) -> RecordCounts:
    records, keys = sum(each.records for each in scans), sum(each.keys for each in scans)
    live_keys = sum(each.live_keys for each in scans)
    return RecordCounts(records, live_keys, keys - live_keys, records - keys if compacts else None)


def _share(part: int | None, whole: int | None) -> float | None:
    return round(part / whole, 4) if whole and part is not None else None
