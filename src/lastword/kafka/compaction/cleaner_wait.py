"""Waiting until the broker's cleaner has cleaned the nudged partitions, at the same cost for a large topic.

The log is not read again: one small fetch for each partition looks for one record, the newest witness of a nudge. A
cleaning removes every aborted record below the point that it reaches. So when the newest witness is gone, the cleaner
has passed, and the witnesses of earlier nudges are gone too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lastword.core.clock import now_ms
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.compaction.census import Census
from lastword.kafka.compaction.nudge import (
    RollRule,
    bounds_in_the_way,
    gone,
    newest_timestamps_ms,
    nudge,
    nudger,
    peeker,
)

# The first nudge can be too early: a broker may learn of the changed settings after it has taken the nudge.
_SECOND_NUDGE_AFTER_S = 5.0
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, kw_only=True)
class PartitionWork:
    """The work of a cleaning in a partition."""

    # The offset of an obsolete record that will be removed; None if only tombstones or records of a nudge can go.
    sign: int | None
    # Whether the newest segment must be closed first. If not, changed settings are enough.
    needs_nudge: bool


@dataclass(frozen=True, kw_only=True)
class CleaningResult:
    """The result of a cleaning."""

    # The partitions that the cleaner has cleaned.
    through: set[int]
    # The partitions in which no record of a nudge is left, not even of an earlier compaction.
    swept: set[int]
    # The partitions where readers of uncommitted data still see records of a nudge, and the time after which a
    # compaction can remove these records.
    left_until_ms: dict[int, int]


@dataclass(kw_only=True)
class _Turn:
    """A partition that waits for the cleaner."""

    # The record that is looked for; None until the first nudge.
    watched: int | None
    nudge_at: float
    nudges: int = 0


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """Nudges a topic until the cleaner has cleaned it; the settings of the topic are ready for that."""

    connection: Connection
    admin: AdminClient
    topic: str
    rule: RollRule
    delete_retention_ms: int
    min_lag_ms: int
    at_step: Callable[[str], None]
    # Raises when the caller does not wait any more.
    check_wanted: Callable[[], None]
    # The offsets of all records that this cleaning appended, by partition.
    _ours: dict[int, list[int]] = field(default_factory=dict, init=False)

    def run(
        self, work: Mapping[int, PartitionWork], before: Mapping[int, Census], *, timeout_s: float
    ) -> CleaningResult:
        """Cleans as far as the time allows; tombstones too, if there is time for a second cleaning."""
        began = time.monotonic()
        give_up_at = began + timeout_s
        producer = nudger(self.connection, self.topic)
        with peeker(self.connection) as consumer:
            through = self._once(producer, consumer, work, give_up_at)
            met_at = time.monotonic()
            tombstones = {p: at for p in through if (at := before[p].last_tombstone_offset) is not None}
            staying = set(tombstones) - gone(consumer, self.topic, tombstones)
            # The first cleaning has only marked these. A second one will take about as long as the first.
            ripe_at = met_at + (self.delete_retention_ms + self.min_lag_ms) / 1000
            if staying and ripe_at + (met_at - began) < give_up_at:
                self._rest(self.delete_retention_ms / 1000)
                again = PartitionWork(sign=None, needs_nudge=True)
                self._once(producer, consumer, dict.fromkeys(staying, again), give_up_at)
            left = self._left(consumer)
        left_until_ms = rolls_from_ms(self.admin, self.topic, left, self.rule)
        return CleaningResult(through=through, swept=set(self._ours) - left, left_until_ms=left_until_ms)

    def _once(
        self, producer: Producer, consumer: Consumer, work: Mapping[int, PartitionWork], give_up_at: float
    ) -> set[int]:
        """Waits for one cleaning of each partition; returns the partitions that were cleaned."""
        turns = self._turns(work)
        pause_s = 0.05
        self.at_step("nudge" if any(each.needs_nudge for each in work.values()) else "wait")
        while turns and (now := time.monotonic()) < give_up_at:
            due = {p: turn for p, turn in turns.items() if turn.nudge_at <= now}
            if due:
                self._nudge(producer, due)
                pause_s = 0.05
            next_nudge_at = min(turn.nudge_at for turn in turns.values())
            self._rest(max(0.0, min(pause_s, next_nudge_at - time.monotonic())))
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            for partition in gone(consumer, self.topic, _watched(turns)):
                del turns[partition]
        # A sign may be gone although the witness of a later nudge is still there.
        signs = {p: sign for p in turns if (sign := work[p].sign) is not None}
        return set(work) - set(turns) | gone(consumer, self.topic, signs)

    def _turns(self, work: Mapping[int, PartitionWork]) -> dict[int, _Turn]:
        newest_ms = newest_timestamps_ms(self.admin, self.topic, [p for p in work if work[p].needs_nudge])
        turns = {}
        for partition, each in work.items():
            if each.needs_nudge:
                turns[partition] = _Turn(watched=None, nudge_at=self._first_nudge_at(newest_ms[partition]))
            else:
                turns[partition] = _Turn(watched=each.sign, nudge_at=float("inf"))
        return turns

    def _first_nudge_at(self, newest_ms: int) -> float:
        at_ms = now_ms()
        # A record far in the future does not stop the marker if its segment began earlier. So that record sets no time.
        until_ms = self.rule.marker_rolls_at_ms(at_ms if self.rule.is_far_ahead(newest_ms, at_ms) else newest_ms)
        return time.monotonic() + max(0, until_ms - at_ms) / 1000

    def _nudge(self, producer: Producer, due: Mapping[int, _Turn]) -> None:
        """Nudges the partitions, with a roll where a marker alone did not help and timestamps are in the future."""
        self.at_step("nudge")
        if lowered := bounds_in_the_way(settings_now(self.admin, self.topic)):
            # A marker that the topic refuses leaves the transaction open until the broker restarts.
            raise LastwordError(f"{self.topic}: someone lowered {', '.join(lowered)} meanwhile: compact it again")
        newest_ms = newest_timestamps_ms(self.admin, self.topic, due)
        at_ms = now_ms()
        ahead = [p for p, turn in due.items() if turn.nudges > 0 and self.rule.is_far_ahead(newest_ms[p], at_ms)]
        nudged = nudge(
            producer,
            self.topic,
            partitions=due,
            # A broker that stamps records itself would stamp the roll with its clock, as it does the marker.
            rolls_ms={} if self.rule.broker_stamps else {p: self.rule.roll_ms(newest_ms[p], at_ms) for p in ahead},
            rule=self.rule,
            before_abort=lambda: self.at_step("abort"),
        )
        self.at_step("wait")
        for partition, turn in due.items():
            ours = (nudged.witnesses[partition], nudged.rolls.get(partition))
            self._ours.setdefault(partition, []).extend(offset for offset in ours if offset is not None)
            turn.watched = nudged.witnesses[partition]
            # No cleaning before the records are old enough: another witness until then would only be one more to clean.
            unripe_s = max(0, newest_ms[partition] + self.min_lag_ms - at_ms) / 1000 if self.min_lag_ms else 0
            turn.nudge_at = time.monotonic() + unripe_s + _SECOND_NUDGE_AFTER_S * 2**turn.nudges
            turn.nudges += 1

    def _left(self, consumer: Consumer) -> set[int]:
        """The partitions that still have a record of these nudges."""
        left: set[int] = set()
        unseen = {partition: sorted(offsets) for partition, offsets in self._ours.items()}
        while unseen:
            newest = {partition: offsets.pop() for partition, offsets in unseen.items()}
            left |= set(newest) - gone(consumer, self.topic, newest)
            unseen = {partition: offsets for partition, offsets in unseen.items() if offsets and partition not in left}
        return left

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self.check_wanted()
            time.sleep(min(left_s, _LONGEST_PAUSE_S))


def rolls_from_ms(admin: AdminClient, topic: str, partitions: Iterable[int], rule: RollRule) -> dict[int, int]:
    """For each partition the time from which on a marker surely closes its newest segment: now, or later."""
    newest_ms = newest_timestamps_ms(admin, topic, partitions)
    return {p: max(now_ms(), rule.marker_rolls_at_ms(newest)) for p, newest in newest_ms.items()}


def _watched(turns: Mapping[int, _Turn]) -> dict[int, int]:
    return {partition: turn.watched for partition, turn in turns.items() if turn.watched is not None}
