"""Compaction on demand: makes the broker's cleaner compact a topic now, waits for it, and reports what it did.

A record is obsolete if a later record has its key. Kafka's cleaner removes obsolete records when it likes, and never
the newest ones of an idle topic: a segment must be rolled before it is cleaned, only an append rolls it, and a cleaning
starts only when enough of the log is dirty. So some settings of the topic are changed for a while (see `journal`), the
partitions with something to remove are nudged until they are clean (see `nudge`, `cleaner_wait`), and the settings are
put back. If a reader can still see something of a nudge afterwards, the result says so. The cleaner obeys Kafka's own
rules: it keeps records younger than min.compaction.lag.ms and records after the start of an open transaction, and it
removes a tombstone only in a cleaning that begins delete.retention.ms or more after the cleaning that first met it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, LastwordError, NotFound
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import SettingNow, alter_settings, settings_now, topic_identity
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.compaction.census import Census, take_census
from lastword.kafka.compaction.cleaner_wait import Cleaning, CleaningResult, PartitionWork, rolls_from_ms
from lastword.kafka.compaction.journal import JournalEntry, SettingChange, TopicClaim, claimed, put_back, undo
from lastword.kafka.compaction.nudge import (
    LEAST_PAST_MS,
    RollRule,
    bounds_in_the_way,
    newest_timestamps_ms,
    nudger,
    roll_rule,
)
from lastword.kafka.compaction.why_not_smaller import cleaner_off, why_not_smaller, why_nudge_is_left
from lastword.kafka.topics.cleanup_policy import cleanup_policy
from lastword.kafka.topics.log_dirs import sizes_on_disk

# In the order in which they begin. Nudge, abort and wait come again when the cleaner needs another nudge; a topic
# with nothing to remove goes from `count` to its end.
STEPS = ("look", "count", "journal", "alter", "nudge", "abort", "wait", "restore", "forget", "recount")

# Short enough to roll at once, long enough that a busy topic makes no storm of segments: one a second at most.
# This value and the ratio are the same for every caller: if two machines compact a topic at once, the later one finds
# the topic ready, changes nothing, and so puts nothing back wrongly.
_SEGMENT_MS = 1_000
# Spelled as the broker shows the value: another spelling would look like a change by someone else.
_DIRTY_RATIO = "0.0"
_BOUND_SPREAD_S = 1.0
_NOTHING_CLEANED = CleaningResult(through=set(), swept=set(), left_until_ms={})


@dataclass(frozen=True, kw_only=True)
class PartitionCompaction:
    """One partition, before and after, up to the position at which the compaction began."""

    partition: int
    before: Census
    after: Census
    # On the leader's disk; None without the right to see it.
    bytes_before: int | None
    bytes_after: int | None
    # Why it did not get smaller, as a sentence; None when all obsolete records are gone.
    why: str | None
    # None: no record of a nudge is left. Otherwise readers of uncommitted data see records under NUDGE_KEY, and a
    # compaction after this time removes them.
    nudge_left_until_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What a compaction on demand did."""

    topic: str
    partitions: tuple[PartitionCompaction, ...]
    # Sentences: settings that someone else changed meanwhile, leftovers of an interrupted compaction, and partitions
    # with records of a nudge.
    notes: tuple[str, ...]
    took_s: float


def compact_topic(
    connection: Connection,
    topic: str,
    *,
    home: Path,
    timeout_s: float = 60,
    at_step: Callable[[str], None] = lambda _: None,
    check_wanted: Callable[[], None] = lambda: None,
) -> Compaction:
    """Compacts the topic as far as Kafka's rules allow within `timeout_s`; the result has each partition.

    Afterwards the topic has its settings of before. A cleaner that does not finish in time is no error: the result says
    so. `at_step` gets the name of each step of STEPS as it begins. `check_wanted` is called while the compaction reads
    and waits, and may raise to end it: the settings are put back then too.
    """
    began = time.monotonic()
    at_step("look")
    admin = connection.admin()
    connection.topic(topic, admin)
    with claimed(home, str(connection.reach(admin).cluster_id), topic) as claim:
        notes = _undo_left_behind(connection, admin, claim)
        settings = settings_now(admin, topic)
        _refuse_other_policies(topic, settings)
        job = _CompactionJob(
            connection=connection,
            admin=admin,
            topic=topic,
            topic_id=topic_identity(admin, topic),
            settings=settings,
            cleaner_off=cleaner_off(connection, admin, topic),
            timeout_s=timeout_s,
            at_step=at_step,
            check_wanted=check_wanted,
        )
        partitions = job.run(claim, notes)
    return Compaction(topic=topic, partitions=partitions, notes=tuple(notes), took_s=time.monotonic() - began)


def _undo_left_behind(connection: Connection, admin: AdminClient, claim: TopicClaim) -> list[str]:
    entry = claim.entry()
    if entry is None:
        return []
    outcome = undo(connection, admin, entry)
    claim.forget()
    return [*outcome.restored, *outcome.left_alone]


def _refuse_other_policies(topic: str, settings: Mapping[str, SettingNow]) -> None:
    policy = cleanup_policy(settings)
    if not policy.compacts:
        raise BadInput(
            f"{topic} has cleanup.policy={policy.text or 'none'}, so nothing in it is ever compacted: if each key's "
            f"newest record is all you need, change it with  lastword topic alter {topic} --set cleanup.policy=compact"
        )


@dataclass(frozen=True, kw_only=True)
class _CompactionJob:
    connection: Connection
    admin: AdminClient
    topic: str
    topic_id: str
    settings: Mapping[str, SettingNow]
    # The partitions whose leader compacts nothing, with that broker.
    cleaner_off: Mapping[int, int]
    timeout_s: float
    at_step: Callable[[str], None]
    check_wanted: Callable[[], None]

    def run(self, claim: TopicClaim, notes: list[str]) -> tuple[PartitionCompaction, ...]:
        self.at_step("count")
        end = log_bounds(self.connection, self.topic)[1]
        began_ms = now_ms()
        ripe_until_ms = self._ripe_until_ms(began_ms)
        before = self._census(end, end, ripe_until_ms)
        bytes_before = self._bytes()
        left_before = claim.left(self.topic_id) & set(before)
        work = self._work(before, left_before, began_ms)
        cleaned = self._with_altered_settings(claim, notes, work, before) if work else _NOTHING_CLEANED
        left = self._rolls_from_ms(left_before - cleaned.swept) | cleaned.left_until_ms
        claim.write_left(self.topic_id, left)
        notes.extend(why_nudge_is_left(self.topic, left))
        self.at_step("recount")
        after = before | (self._census(end, work, ripe_until_ms) if work else {})
        bytes_after = self._bytes() if work else bytes_before
        whys = why_not_smaller(
            self.connection,
            self.topic,
            before,
            after,
            uncleaned=set(work) - cleaned.through,
            cleaner_off=self.cleaner_off,
            settings=self.settings,
            timeout_s=self.timeout_s,
        )
        return tuple(
            PartitionCompaction(
                partition=p,
                before=before[p],
                after=after[p],
                bytes_before=bytes_before.get(p),
                bytes_after=bytes_after.get(p),
                why=whys.get(p),
                nudge_left_until_ms=left.get(p),
            )
            for p in before
        )

    def _work(self, before: Mapping[int, Census], left: set[int], at_ms: int) -> dict[int, PartitionWork]:
        """The work of each partition that has any."""
        chosen = [p for p in before if p not in self.cleaner_off and (p in left or self._has_work(before[p], at_ms))]
        newest_ms = newest_timestamps_ms(self.admin, self.topic, chosen)
        work = {}
        for p in chosen:
            sign = before[p].last_removable_offset
            # A segment with a record that is too young is not cleaned. All removable records lie before such a segment,
            # so the segments to clean are closed already.
            needs_nudge = newest_ms[p] <= self._ripe_until_ms(at_ms)
            # With only records of an earlier nudge to remove, a roll would leave another such record: no gain.
            if not self._has_work(before[p], at_ms) and self._rule.is_far_ahead(newest_ms[p], at_ms):
                continue
            if needs_nudge or sign is not None:
                work[p] = PartitionWork(sign=sign, needs_nudge=needs_nudge)
        return work

    def _rolls_from_ms(self, partitions: Iterable[int]) -> dict[int, int]:
        return rolls_from_ms(self.admin, self.topic, partitions, self._rule)

    @property
    def _rule(self) -> RollRule:
        return roll_rule(self.settings, segment_ms=_SEGMENT_MS)

    def _census(self, end: Position, partitions: Iterable[int], ripe_until_ms: float) -> dict[int, Census]:
        """Counts up to `end`, before and after: records that others write meanwhile do not count."""
        chosen = sorted(partitions)
        batches = read_log(
            self.connection, self.topic, partitions=chosen, stop=end, progress=lambda *_: self.check_wanted()
        )
        return {p: Census() for p in chosen} | take_census(batches, ripe_until_ms=ripe_until_ms)

    def _bytes(self) -> dict[int, int]:
        leaders = {
            p: metadata.leader for p, metadata in self.connection.topic(self.topic, self.admin).partitions.items()
        }
        try:
            sizes = sizes_on_disk(self.connection, self.topic)
        except LastwordError:
            # Sizes need a right on the cluster, which the compaction itself does not need.
            return {}
        return {p: on[leaders[p]] for p, on in sizes.items() if leaders.get(p) in on}

    def _number(self, name: str) -> int:
        return int(self.settings[name].value)

    def _ripe_until_ms(self, at_ms: float) -> float:
        """The timestamp up to which records may be cleaned before the time is up."""
        lag_ms = self._number("min.compaction.lag.ms")
        return at_ms + self.timeout_s * 1000 - lag_ms if lag_ms else float("inf")

    def _has_work(self, census: Census, at_ms: float) -> bool:
        """Whether a cleaning now can remove something: obsolete records, or tombstones past their retention."""
        if census.last_removable_offset is not None:
            return True
        if census.oldest_tombstone_ms is None or census.newest_timestamp_ms > self._ripe_until_ms(at_ms):
            return False
        retention_ms = self._number("delete.retention.ms")
        # No cleaning met the tombstone before it was written. So it goes at the earliest this long after its timestamp.
        return retention_ms < self.timeout_s * 1000 or census.oldest_tombstone_ms + retention_ms <= at_ms

    def _changes(self) -> dict[str, SettingChange]:
        """Only the settings that a compaction needs to be different."""
        changes = {}
        if self._number("segment.ms") > _SEGMENT_MS:
            changes["segment.ms"] = str(_SEGMENT_MS)
        if float(self.settings["min.cleanable.dirty.ratio"].value) > 0:
            changes["min.cleanable.dirty.ratio"] = _DIRTY_RATIO
        changes |= dict.fromkeys(bounds_in_the_way(self.settings), str(LEAST_PAST_MS))
        return {
            name: SettingChange(before=self.settings[name].on_topic, during=value) for name, value in changes.items()
        }

    def _with_altered_settings(
        self, claim: TopicClaim, notes: list[str], work: Mapping[int, PartitionWork], before: Mapping[int, Census]
    ) -> CleaningResult:
        entry = JournalEntry(
            cluster_id=str(self.connection.reach(self.admin).cluster_id),
            topic=self.topic,
            topic_id=self.topic_id,
            changes=self._changes(),
        )
        self.at_step("journal")
        # Before the first record is written: if this process dies, the next compaction looks in these partitions.
        claim.write_left(self.topic_id, claim.left(self.topic_id) | {p for p in work if work[p].needs_nudge})
        # Also when no setting changes: the command that finds the entry ends a transaction that this one left open.
        claim.write(entry)
        steps: list[str] = []

        def at_step(step: str) -> None:
            steps.append(step)
            self.at_step(step)

        try:
            self.at_step("alter")
            if entry.changes:
                alter_settings(self.admin, self.topic, {name: c.during for name, c in entry.changes.items()})
            if bounds_in_the_way(self.settings):
                # A leader applies a setting a moment after the cluster shows it, and must not refuse a marker.
                time.sleep(_BOUND_SPREAD_S)
            cleaning = Cleaning(
                connection=self.connection,
                admin=self.admin,
                topic=self.topic,
                rule=self._rule,
                delete_retention_ms=self._number("delete.retention.ms"),
                min_lag_ms=self._number("min.compaction.lag.ms"),
                at_step=at_step,
                check_wanted=self.check_wanted,
            )
            return cleaning.run(work, before, timeout_s=self.timeout_s)
        finally:
            self._restore(claim, entry, notes, has_nudged="nudge" in steps)

    def _restore(self, claim: TopicClaim, entry: JournalEntry, notes: list[str], *, has_nudged: bool) -> None:
        self.at_step("restore")
        try:
            if has_nudged and bounds_in_the_way(self.settings):
                # No marker may be on its way when the bound is back, and an abort does not wait for its markers. A new
                # nudger waits for them. Without one the bound stays, and so does the journal's entry.
                nudger(self.connection, self.topic)
            notes.extend(put_back(self.admin, entry).left_alone)
        except NotFound:
            notes.append(f"{self.topic} was deleted meanwhile")
        except LastwordError as failure:
            raise type(failure)(
                f"{failure}; until the next lastword command that reaches the cluster, {self.topic} keeps "
                + ", ".join(f"{name}={change.during}" for name, change in entry.changes.items())
            ) from None
        self.at_step("forget")
        claim.forget()
