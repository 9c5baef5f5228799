"""One topic over HTTP: its settings, its partitions, what a count found in it, its last compaction."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from lastword.core.shapes.field_types import Count, Rate, TimeMs

_Counted = Annotated[Count | None, Meta(description="By the last count.")]
_HISTORY = "A sample every 10 s, of the last hour, the oldest first."
# One each ten seconds, for an hour.
MOST_SAMPLES = 360


class TopicSetting(Struct, frozen=True):
    value: str
    source: Literal["topic", "broker", "default"]


class PartitionStatus(Struct, frozen=True, kw_only=True):
    """One partition of a topic; the last four fields are as they were counted last."""

    partition: Count
    leader: Count | None
    replicas: list[Count]
    in_sync: list[Count]
    start: Count | None
    end: Count | None
    stable: Count | None
    bytes: Count | None
    records: _Counted
    live_keys: _Counted
    tombstones: _Counted
    obsolete: _Counted


class TopicCensus(Struct, frozen=True, kw_only=True):
    """The records that were really there when the topic was read last."""

    at: TimeMs
    records: Count
    live_keys: Count
    tombstones: Count
    obsolete: Annotated[Count | None, Meta(description="null if the topic is not compacted, or if that is not known.")]
    obsolete_share: Rate | None
    duplicate_factor: Rate | None
    tombstone_share: Rate | None


class TopicSize(Struct, frozen=True, kw_only=True):
    """The size of a topic; null while unknown."""

    bytes: Count | None
    records: Count | None


class CompactionStatus(Struct, frozen=True, kw_only=True):
    """How a compaction goes, or went."""

    state: Literal["running", "done", "failed"]
    began: TimeMs
    ended: TimeMs | None
    step: Annotated[str | None, Meta(description="The current step, or the last one.")]
    why: Annotated[
        str | None,
        Meta(description="The failure, why the topic is not smaller, or where records of the compaction stay."),
    ]
    before: TopicSize
    after: TopicSize | None


class CompactionBegun(Struct, frozen=True):
    """How the compaction goes is in the answer about the topic."""

    state: Literal["running"]
    began: TimeMs


class TopicSample(Struct, frozen=True):
    at: TimeMs
    bytes: Count | None
    end: Count | None
    lag: Count | None


class TopicAnswer(Struct, frozen=True, kw_only=True):
    """One topic as it was seen last."""

    name: str
    topic_id: str
    cleanup_policy: str | None
    tables: list[str]
    settings: Annotated[
        dict[str, TopicSetting] | None,
        Meta(description="Settings about compaction, and settings of the topic; null without the right to read them."),
    ]
    bytes: Count | None
    partitions: list[PartitionStatus]
    census: Annotated[TopicCensus | None, Meta(description="The result of the last count of the records.")]
    census_why: Annotated[str | None, Meta(description="Why there is no count, or no newer one.")]
    rows: dict[str, Count | None]
    at: TimeMs
    state: Literal["connected", "away"]
    why: Annotated[str | None, Meta(description="What is unknown, why, and what to do.")]
    records_per_s: Rate | None
    compaction: Annotated[CompactionStatus | None, Meta(description="The last compaction that this server ran.")]
    history: Annotated[list[TopicSample], Meta(description=_HISTORY, max_length=MOST_SAMPLES)]
