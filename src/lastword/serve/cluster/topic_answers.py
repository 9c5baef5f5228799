"""One topic over HTTP: where its partitions are, its settings, what a count found in it, and how it was lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lastword.core.errors import LastwordError
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
from lastword.kafka.topics.topic_description import PartitionDescription, TopicDescription
from lastword.kafka.topics.topic_scan import PartitionScan, TopicScan
from lastword.serve.cluster.topic_counts import TopicCount
from lastword.serve.tables.served_table import ServedTable

_NUMBERS = ("records", "live_keys", "tombstones", "obsolete")


def topic_json(
    topic: TopicDescription, counted: TopicCount | None, tables: Sequence[ServedTable], *, census_why: str | None
) -> dict[str, Any]:
    """What is known of the topic itself; the rest is how it was seen."""
    scan = None if counted is None else counted.scan
    scans = {} if scan is None else {each.partition: each for each in scan.partitions}
    compacts = is_compacted(topic) is True
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "cleanup_policy": cleanup_policy(topic),
        "tables": [table.name for table in tables],
        "settings": _settings(topic) if topic.settings else None,
        "bytes": topic.bytes_on_disk,
        "partitions": [_partition(each, scans.get(each.partition), compacts=compacts) for each in topic.partitions],
        "census": None if counted is None or scan is None else {"at": counted.at, **_census(scan, compacts=compacts)},
        "census_why": census_why,
        "rows": {table.name: _rows(table) for table in tables},
    }


def cleanup_policy(topic: TopicDescription) -> str | None:
    """None where its settings are not known."""
    policy = topic.cleanup_policy
    return None if policy is None else policy.text


def is_compacted(topic: TopicDescription) -> bool | None:
    """Whether Kafka's cleaner takes what is obsolete from it; None where its settings are not known."""
    policy = topic.cleanup_policy
    return None if policy is None else policy.compacts


def _settings(topic: TopicDescription) -> Mapping[str, Any]:
    """Those that are about compaction, and those that somebody has set."""
    return {
        name: {"value": now.value, "source": now.comes_from}
        for name, now in topic.settings.items()
        if name in TOPIC_SETTINGS or now.comes_from != "default"
    }


def _partition(described: PartitionDescription, scan: PartitionScan | None, *, compacts: bool) -> dict[str, Any]:
    return {
        "partition": described.partition,
        "leader": described.leader,
        "replicas": described.replicas,
        "in_sync": described.in_sync,
        "start": described.start_offset,
        "end": described.end_offset,
        "stable": described.stable_offset,
        "bytes": described.bytes_on_disk,
        **(dict.fromkeys(_NUMBERS) if scan is None else _counted([scan], compacts=compacts)),
    }


def _census(scan: TopicScan, *, compacts: bool) -> dict[str, Any]:
    counted = _counted(scan.partitions, compacts=compacts)
    records = counted["records"]
    return {
        **counted,
        "obsolete_share": _share(counted["obsolete"], records),
        "duplicate_factor": _share(records, counted["live_keys"]) if compacts else None,
        "tombstone_share": _share(counted["tombstones"], records),
    }


def _counted(scans: Sequence[PartitionScan], *, compacts: bool) -> dict[str, Any]:
    """Each record is the last word of its key, a value or a tombstone, or it is obsolete.

    That is so where the cleaner compacts: elsewhere an older record, or one without a key, is as good as any.
    """
    records, keys = sum(each.records for each in scans), sum(each.keys for each in scans)
    live_keys = sum(each.live_keys for each in scans)
    obsolete = records - keys if compacts else None
    return dict(zip(_NUMBERS, (records, live_keys, keys - live_keys, obsolete), strict=True))


def _share(part: int | None, whole: int) -> float | None:
    return round(part / whole, 4) if whole and part is not None else None


def _rows(table: ServedTable) -> int | None:
    try:
        return table.ask(len)
    except LastwordError:
        return None
