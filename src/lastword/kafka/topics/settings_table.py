"""Every compaction setting in one table: what it means, its default in Kafka 4.3, its range, and where it hurts.

The validation, `lastword topic explain` and docs/topic-settings.md are all made from it. The tests hold the defaults
and the ends of the ranges against a real broker.
"""

from __future__ import annotations

from lastword.kafka.topics.setting_kinds import LARGEST_INT, LONGEST, Choice, Danger, Real, Setting, Whole

_SECOND_MS = 1_000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
_MIB = 2**20
_NO_LIMIT = {LONGEST: "no limit"}

_TOPIC = (
    Setting(
        name="cleanup.policy",
        kind=Choice(words=("compact", "delete", "compact,delete")),
        default="delete",
        meaning="What happens to old records. compact keeps the newest record of every key, delete drops whole "
        "segments by age or size, compact,delete does both.",
        recommendation="compact for a table (what lastword creates), delete for events.",
        dangers=(
            Danger(
                where="delete",
                applies=lambda value: value == "delete",
                harm="every record is dropped after retention.ms or retention.bytes, also the only one of its key: "
                "right for events, wrong for a table",
            ),
            Danger(
                where="compact,delete",
                applies=lambda value: value == "compact,delete",
                harm="a key that nobody writes for retention.ms is dropped without a tombstone, so readers that "
                "already have it keep it",
            ),
        ),
    ),
    Setting(
        name="min.cleanable.dirty.ratio",
        kind=Real(least=0, most=1),
        default="0.5",
        meaning="The cleaner takes a partition when more than this share of its bytes was written since the last "
        "cleaning. The segment being written does not count.",
        recommendation="0.5; 0.1 to 0.3 where disk space or a short full read is worth more work of the cleaner.",
        dangers=(
            Danger(
                where="below 0.05",
                applies=lambda value: float(value) < 0.05,
                harm="every small addition makes the cleaner rewrite the whole partition, over and over",
            ),
            Danger(
                where="1",
                applies=lambda value: float(value) == 1,
                harm="no share is more than 1, so only max.compaction.lag.ms ever starts a cleaning",
            ),
        ),
    ),
    Setting(
        name="segment.ms",
        kind=Whole(least=1, most=LONGEST, unit="ms", stands_for=_NO_LIMIT),
        default=str(7 * _DAY_MS),
        meaning="The age at which the next append closes the segment being written and opens a new one. The cleaner "
        "never touches the segment being written, so new records wait for this (or for segment.bytes), and on a topic "
        "where nothing is appended they wait for ever.",
        recommendation="1h to 1d for a table that should stay small; seconds only to try things out.",
        dangers=(
            Danger(
                where="below 1m",
                applies=lambda value: int(value) < _MINUTE_MS,
                harm="a busy topic opens a new segment that often in every partition: many small files, and the broker "
                "keeps all of them open",
            ),
        ),
    ),
    Setting(
        name="segment.bytes",
        kind=Whole(least=_MIB, most=LARGEST_INT, unit="bytes"),
        default=str(1024 * _MIB),
        meaning="The size at which the segment being written is closed and a new one opened, whichever of this and "
        "segment.ms comes first.",
        recommendation="64MiB to 256MiB for a table, so that cleaning starts before a whole gigabyte is written; the "
        "default where the topic is large.",
        dangers=(
            Danger(
                where="below 16MiB",
                applies=lambda value: int(value) < 16 * _MIB,
                harm="a large topic becomes very many files, and the broker keeps all of them open",
            ),
        ),
    ),
    Setting(
        name="delete.retention.ms",
        kind=Whole(least=0, most=LONGEST, unit="ms", stands_for=_NO_LIMIT),
        default=str(_DAY_MS),
        meaning="How long a tombstone stays readable after the first cleaning that reaches it; a later cleaning then "
        "removes it.",
        recommendation="Longer than any reader may be away, and than a full read takes: 1d, or 7d across weekends.",
        dangers=(
            Danger(
                where="below 1h",
                applies=lambda value: int(value) < _HOUR_MS,
                harm="a reader that is away for longer than this misses the tombstones and keeps the deleted keys",
            ),
        ),
    ),
    Setting(
        name="min.compaction.lag.ms",
        kind=Whole(least=0, most=LONGEST, unit="ms", stands_for=_NO_LIMIT),
        default="0",
        meaning="A record younger than this is never cleaned, so a reader that is at most this far behind sees every "
        "record and not only the newest of each key. May not be more than max.compaction.lag.ms.",
        recommendation="0, unless readers need every change; then as long as the slowest of them lags.",
        dangers=(
            Danger(
                where="above 7d",
                applies=lambda value: int(value) > 7 * _DAY_MS,
                harm="nothing is compacted for that long, so the topic grows like one of events",
            ),
        ),
    ),
    Setting(
        name="max.compaction.lag.ms",
        kind=Whole(least=1, most=LONGEST, unit="ms", stands_for=_NO_LIMIT),
        default=str(LONGEST),
        meaning="A partition with an uncleaned record older than this is cleaned whatever its dirty ratio, as soon as "
        "a cleaner thread is free. It also takes the place of a longer segment.ms.",
        recommendation="No limit; 1d to 7d where a deleted or replaced value must be gone from the disk by a deadline.",
        dangers=(
            Danger(
                where="below 1m",
                applies=lambda value: int(value) < _MINUTE_MS,
                harm="it opens a new segment that often in every partition and has each of them cleaned at once",
            ),
        ),
    ),
    Setting(
        name="retention.ms",
        kind=Whole(least=-1, most=LONGEST, unit="ms", stands_for={-1: "no limit", **_NO_LIMIT}),
        default=str(7 * _DAY_MS),
        meaning="How long records are kept under a cleanup.policy with delete. Without delete in it, it does nothing.",
        recommendation="Leave it alone on a compacted topic; on a topic of events, longer than any reader may be away.",
        dangers=(
            Danger(
                where="0 to 1h",
                applies=lambda value: 0 <= int(value) < _HOUR_MS,
                harm="where cleanup.policy has delete, a reader that is away for longer loses records",
            ),
        ),
    ),
    Setting(
        name="retention.bytes",
        kind=Whole(least=-1, most=LONGEST, unit="bytes", stands_for={-1: "no limit"}),
        default="-1",
        meaning="How large each partition may grow under a cleanup.policy with delete before its oldest segments go. "
        "Without delete in it, it does nothing.",
        recommendation="-1 on a compacted topic; it counts for each partition, not for the topic.",
        dangers=(
            Danger(
                where="0 to 1MiB",
                applies=lambda value: 0 <= int(value) < _MIB,
                harm="where cleanup.policy has delete, hardly anything outlives the next check of the broker",
            ),
        ),
    ),
    Setting(
        name="max.message.bytes",
        kind=Whole(least=0, most=LARGEST_INT, unit="bytes"),
        default="1048588",
        meaning="The largest batch of records the topic takes, after compression; so also the largest record.",
        recommendation="The default. A table of larger values is better served by a reference to where they are.",
        dangers=(
            Danger(
                where="below 1KiB",
                applies=lambda value: int(value) < 2**10,
                harm="it refuses batches of a few ordinary records",
            ),
            Danger(
                where="above 16MiB",
                applies=lambda value: int(value) > 16 * _MIB,
                harm="brokers, the cleaner and every reader need buffers for a batch of that size",
            ),
        ),
    ),
    Setting(
        name="min.insync.replicas",
        kind=Whole(least=1, most=LARGEST_INT),
        default="1",
        meaning="How many replicas must be in sync for a write with acks=all, as all of lastword's are, to be taken.",
        recommendation="2 with a replication of 3: one broker may be down, and an acknowledged record is on two.",
    ),
    Setting(
        name="compression.type",
        kind=Choice(words=("producer", "uncompressed", "gzip", "lz4", "snappy", "zstd")),
        default="producer",
        meaning="How the broker keeps batches. producer leaves them as they were written; anything else has the broker "
        "compress them again.",
        recommendation="producer, and choose the compression where you write.",
    ),
    Setting(
        name="message.timestamp.type",
        kind=Choice(words=("CreateTime", "LogAppendTime")),
        default="CreateTime",
        meaning="Whether a record carries the time its writer gave it or the time the broker appended it.",
        recommendation="CreateTime. Within a partition, offsets decide which record of a key is newest, never time.",
    ),
)

TOPIC_SETTINGS = {setting.name: setting for setting in _TOPIC}

# All settings that a 4.3 broker takes for a topic. Settings without an entry above reach the broker unchecked.
KNOWN_TO_KAFKA = frozenset(TOPIC_SETTINGS) | {
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "segment.index.bytes",
    "segment.jitter.ms",
    "unclean.leader.election.enable",
}
