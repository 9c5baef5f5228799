"""One topic over HTTP: where its partitions are, its settings, what a count found in it, and how it was lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lastword.core.errors import LastwordError
from lastword.kafka.key_spread import PartitionScan, TopicScan
from lastword.kafka.settings_table import TOPIC_SETTINGS
from lastword.kafka.topic_description import PartitionDescription, TopicDescription
from lastword.serve.counting import Counted, obsolete
from lastword.serve.tables import ServedTable


def topic_json(
    topic: TopicDescription, counted: Counted | None, tables: Sequence[ServedTable], *, is_counted_why: str | None
) -> dict[str, Any]:
    """What is known of the topic itself; the rest is how it was seen."""
    scan = None if counted is None else counted.scan
    scans = {} if scan is None else {each.partition: each for each in scan.partitions}
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "cleanup_policy": cleanup_policy(topic),
        "tables": [table.name for table in tables],
        "settings": _settings(topic) if topic.settings else None,
        "bytes": topic.bytes_on_disk,
        "partitions": [_partition(each, scans.get(each.partition)) for each in topic.partitions],
        "census": None if counted is None or scan is None else {"at": counted.at, **_census(scan)},
        "census_why": is_counted_why,
        "rows": {table.name: _rows(table) for table in tables},
    }


def cleanup_policy(topic: TopicDescription) -> str | None:
    """None where its settings are not known."""
    setting = topic.settings.get("cleanup.policy")
    return None if setting is None else setting.value


def _settings(topic: TopicDescription) -> Mapping[str, Any]:
    """Those that are about compaction, and those that somebody has set."""
    return {
        name: {"value": now.value, "source": now.comes_from}
        for name, now in topic.settings.items()
        if name in TOPIC_SETTINGS or now.comes_from != "default"
    }


def _partition(described: PartitionDescription, scan: PartitionScan | None) -> dict[str, Any]:
    return {
        "partition": described.partition,
        "leader": described.leader,
        "replicas": described.replicas,
        "in_sync": described.in_sync,
        "start": described.start_offset,
        "end": described.end_offset,
        "stable": described.stable_offset,
        "bytes": described.bytes_on_disk,
        "records": None if scan is None else scan.records,
        "live_keys": None if scan is None else scan.live_keys,
        "tombstones": None if scan is None else scan.tombstones,
        "obsolete": None if scan is None else obsolete(scan),
    }


def _census(scan: TopicScan) -> dict[str, Any]:
    records = sum(each.records for each in scan.partitions)
    live_keys = sum(each.live_keys for each in scan.partitions)
    tombstones = sum(each.tombstones for each in scan.partitions)
    superseded = sum(map(obsolete, scan.partitions))
    return {
        "records": records,
        "live_keys": live_keys,
        "tombstones": tombstones,
        "obsolete": superseded,
        "obsolete_share": _share(superseded, records),
        "duplicate_factor": _share(records, live_keys),
        "tombstone_share": _share(tombstones, records),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _rows(table: ServedTable) -> int | None:
    try:
        return table.ask(len)
    except LastwordError:
        return None
