"""The broker's side of compaction: settings of the log cleaner, which serves every topic of a broker.

They are set on the broker (`lastword broker start --set NAME=VALUE`) and can't be set on a topic.
"""

from __future__ import annotations

import sys

from lastword.kafka.topics.setting_kinds import LARGEST_INT, LONGEST, Choice, Danger, Real, Setting, Whole
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS

_MIB = 2**20


def _default_of(topic_setting: str, name: str) -> Setting:
    """A broker's setting that is the default of a topic's, with the range and the dangers of that one."""
    ours = TOPIC_SETTINGS[topic_setting]
    return Setting(
        name=name,
        kind=ours.kind,
        default=ours.default,
        meaning=f"The {topic_setting} of every topic that does not set its own.",
        recommendation=f"Leave it alone and set {topic_setting} on the topics that need it.",
        dangers=ours.dangers,
        for_one_topic=topic_setting,
    )


_BROKER = (
    Setting(
        name="log.cleaner.enable",
        kind=Choice(words=("true", "false")),
        default="true",
        meaning="Whether the broker compacts at all. Deprecated: Kafka 5.0 removes it.",
        recommendation="true.",
        dangers=(
            Danger(
                where="false",
                applies=lambda value: value == "false",
                harm="no topic is ever compacted, Kafka's own __consumer_offsets included: all of them only grow",
            ),
        ),
    ),
    Setting(
        name="log.cleaner.threads",
        kind=Whole(least=1, most=LARGEST_INT),
        default="1",
        meaning="How many partitions are cleaned at the same time. On a running broker it can at most be doubled or "
        "halved in one step.",
        recommendation="1; more when cleaning falls behind the writers while the disks have room.",
    ),
    Setting(
        name="log.cleaner.backoff.ms",
        kind=Whole(least=0, most=LONGEST, unit="ms"),
        default="15000",
        meaning="How long a cleaner thread sleeps when no partition needs cleaning.",
        recommendation="15s; less only to watch compaction happen.",
        dangers=(
            Danger(
                where="below 100ms",
                applies=lambda value: int(value) < 100,
                harm="an idle cleaner looks through every partition many times a second",
            ),
        ),
    ),
    Setting(
        name="log.cleaner.dedupe.buffer.size",
        kind=Whole(least=_MIB + 1, most=LONGEST, unit="bytes"),
        default=str(128 * _MIB),
        meaning="The memory of all cleaner threads together for the keys of a cleaning, 24 bytes for each key. What "
        "does not fit waits for the next round. Each thread needs more than 1MiB and uses at most 2GiB.",
        recommendation="128MiB, enough for about 5 million keys in one round; more where a partition has more.",
        dangers=(
            Danger(
                where="below 8MiB",
                applies=lambda value: int(value) < 8 * _MIB,
                harm="a round holds few keys, so a large partition is read and rewritten many times",
            ),
        ),
    ),
    Setting(
        name="log.cleaner.io.max.bytes.per.second",
        kind=Real(least=1, most=sys.float_info.max, stands_for={sys.float_info.max: "no limit"}),
        default="1.7976931348623157E308",
        meaning="How many bytes per second the cleaner threads may read and write together.",
        recommendation="No limit; a bound where cleaning slows the writers and readers of a shared disk.",
        dangers=(
            Danger(
                where="below 1048576",
                applies=lambda value: float(value) < _MIB,
                harm="the cleaner falls behind even modest writers, and compacted topics grow",
            ),
        ),
    ),
    Setting(
        name="log.cleaner.io.buffer.size",
        kind=Whole(least=0, most=LARGEST_INT, unit="bytes"),
        default="524288",
        meaning="The memory of all cleaner threads together for reading and writing the log. It grows by itself for a "
        "batch that does not fit.",
        recommendation="512KiB.",
        dangers=(
            Danger(
                where="below 1KiB",
                applies=lambda value: int(value) < 2**10,
                harm="there is hardly a buffer to grow from, and at 0 the cleaner never gets through a partition",
            ),
        ),
    ),
    Setting(
        name="log.cleaner.io.buffer.load.factor",
        kind=Real(least=0, most=1),
        default="0.9",
        meaning="How full the memory for keys may become. More keys fit into a round at a higher value, and looking "
        "one up takes longer.",
        recommendation="0.9.",
        dangers=(
            Danger(
                where="below 0.1",
                applies=lambda value: float(value) < 0.1,
                harm="most of the memory for keys stays empty, and at 0 not one key fits",
            ),
        ),
    ),
    _default_of("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
    _default_of("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    _default_of("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    _default_of("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)

CLEANER_SETTINGS = {setting.name: setting for setting in _BROKER}
