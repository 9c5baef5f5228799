"""Why a partition did not get smaller in a compaction, as a sentence that says what to do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from confluent_kafka.admin import AdminClient

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput
from lastword.core.record import NUDGE_KEY
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import SettingNow, broker_settings
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.compaction.census import Census
from lastword.kafka.topics.topic_description import LATEST, offsets

_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def why_not_smaller(
    connection: Connection,
    topic: str,
    before: Mapping[int, Census],
    after: Mapping[int, Census],
    *,
    uncleaned: set[int],
    cleaner_off: Mapping[int, int],
    settings: Mapping[str, SettingNow],
    timeout_s: float,
) -> dict[int, str]:
    """The reason for each partition that did not get as small as it could; nothing for the others."""
    in_doubt = [p for p in before if after[p].obsolete or after[p].records == before[p].records]
    unfinished = [p for p in in_doubt if after[p].obsolete or p in uncleaned]
    open_at = _open_transactions(connection, topic) if unfinished else {}
    whys = {}
    for p in in_doubt:
        if p in cleaner_off and after[p].records:
            whys[p] = _cleaner_is_off([cleaner_off[p]])
        elif p not in unfinished:
            whys[p] = _why_clean(after[p], int(settings["delete.retention.ms"].value))
        elif p in open_at:
            whys[p] = (
                f"a transaction open since offset {open_at[p]} holds the cleaner back: wait until its writer ends it, "
                "or find the writer with  kafka-transactions.sh find-hanging"
            )
        else:
            whys[p] = _why_young(after[p], int(settings["min.compaction.lag.ms"].value)) or (
                f"the cleaner did not finish within {timeout_s:g} s: give it longer with --timeout (between rounds it "
                "rests for log.cleaner.backoff.ms, 15 s by default), and if that changes nothing, look for "
                "'log-cleaner' in the broker's log"
            )
    return whys


def cleaner_off(connection: Connection, admin: AdminClient, topic: str) -> dict[int, int]:
    """The partitions whose leader has its cleaner switched off, with that broker; BadInput if that is true of all.

    Empty without the right to see the settings of the brokers.
    """
    leaders = {p: metadata.leader for p, metadata in connection.topic(topic, admin).partitions.items()}
    settings = broker_settings(admin, {leader for leader in leaders.values() if leader >= 0})
    off = {broker for broker, each in settings.items() if each.get("log.cleaner.enable") == "false"}
    partitions = {p: leader for p, leader in leaders.items() if leader in off}
    if len(partitions) == len(leaders):
        raise BadInput(f"{topic} can't be compacted: {_cleaner_is_off(off)}")
    return partitions


def why_nudge_is_left(topic: str, left_until_ms: Mapping[int, int]) -> list[str]:
    """A sentence for each time after which another compaction removes the remaining records of a nudge."""
    at_ms = now_ms()
    partitions: dict[str, list[int]] = {}
    for p, until_ms in sorted(left_until_ms.items()):
        # A new marker needs a second to become old enough: that is not worth a date.
        ahead = until_ms > at_ms + 10_000
        when = f"after {_utc(until_ms)}, because it has records stamped in the future" if ahead else "again"
        partitions.setdefault(when, []).append(p)
    return [
        f"{topic} partition {', '.join(map(str, which))}: readers of uncommitted data see records under "
        f"{NUDGE_KEY.decode()} (null) until the topic is compacted {when}"
        for when, which in partitions.items()
    ]


def duration(ms: float) -> str:
    """`90 seconds`, `24 hours`: rounded as a person would say it."""
    for size, unit in _UNITS:
        if ms >= 2 * size or ms == size:
            count = round(ms / size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{round(ms)} ms"


def _cleaner_is_off(brokers: Iterable[int]) -> str:
    which = ", ".join(map(str, sorted(brokers)))
    return (
        f"log.cleaner.enable=false on broker {which}, so Kafka compacts nothing there: start the broker with "
        "log.cleaner.enable=true (a local one:  lastword broker stop,  "
        "lastword broker start --set log.cleaner.enable=true)"
    )


def _utc(ms: int) -> str:
    # Rounded up: at the second that is shown, the time must be over.
    return datetime.fromtimestamp(-(-ms // 1000), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _why_clean(census: Census, retention_ms: int) -> str:
    if not census.records:
        return "nothing to compact: it has no records"
    if not census.tombstones:
        return "nothing is obsolete: it already has one record for each key"
    return (
        f"nothing is obsolete; its tombstones ({census.tombstones}) go in the first cleaning that starts "
        f"delete.retention.ms ({duration(retention_ms)}) after the one that first met them: compact again then"
    )


def _why_young(census: Census, lag_ms: int) -> str | None:
    ripe_in_ms = census.newest_timestamp_ms + lag_ms - time.time() * 1000
    if not lag_ms or ripe_in_ms <= 0:
        return None
    return (
        f"records younger than min.compaction.lag.ms ({duration(lag_ms)}) are kept, with all that shares a segment "
        f"with them: compact again in {duration(ripe_in_ms)}"
    )


def _open_transactions(connection: Connection, topic: str) -> dict[int, int]:
    """The offset at which an open transaction begins, for each partition that has one."""
    stable = log_bounds(connection, topic)[1]
    # In a variable, because an admin client without one is closed before it has answered.
    admin = connection.admin()
    high_watermarks = offsets(connection, admin, topic, stable, LATEST)
    return {p: offset for p, offset in stable.items() if offset < high_watermarks[p]}
