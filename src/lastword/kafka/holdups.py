"""Why a partition did not get smaller in a compaction, in words that say what to do."""

from __future__ import annotations

import time
from collections.abc import Mapping

from lastword.kafka.census import Census
from lastword.kafka.connection import Connection
from lastword.kafka.live_settings import SettingNow
from lastword.kafka.reading import log_bounds
from lastword.kafka.topic_description import LATEST, offsets

_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def why_not_smaller(
    connection: Connection,
    topic: str,
    before: Mapping[int, Census],
    after: Mapping[int, Census],
    *,
    uncleaned: set[int],
    settings: Mapping[str, SettingNow],
    timeout_s: float,
) -> dict[int, str]:
    """For each partition that did not get as small as it could, the reason; nothing for the others."""
    in_doubt = [p for p in before if after[p].obsolete or after[p].records == before[p].records]
    unfinished = [p for p in in_doubt if after[p].obsolete or p in uncleaned]
    open_at = _open_transactions(connection, topic) if unfinished else {}
    whys = {}
    for p in in_doubt:
        if p not in unfinished:
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


def duration(ms: float) -> str:
    """`90 seconds`, `24 hours`: rounded to what a person would say."""
    for size, unit in _UNITS:
        if ms >= 2 * size or ms == size:
            count = round(ms / size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{round(ms)} ms"


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
    # Named, because an admin client that nobody holds is closed before it has answered.
    admin = connection.admin()
    high_watermarks = offsets(connection, admin, topic, stable, LATEST)
    return {p: offset for p, offset in stable.items() if offset < high_watermarks[p]}
