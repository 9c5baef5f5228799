"""Waiting for the broker's cleaner to go through the partitions that were nudged, as cheaply as for a small topic.

Nothing is read again to find out: one record whose going shows that the cleaner has passed is looked for, with one
small fetch for each partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lastword.kafka.census import Census
from lastword.kafka.connection import Connection
from lastword.kafka.nudge import RollRule, gone, nudge, nudger, peeker

# The first nudge can be too early: a broker may hear of the changed settings after it has taken the nudge.
_SECOND_NUDGE_AFTER_S = 5.0
_LONGEST_PAUSE_S = 1.0

# For each partition the offset of an obsolete record that will go; None where only tombstones may go, and the
# nudge's witness must serve.
Signs = Mapping[int, int | None]


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """Nudges a topic, whose settings are ready for it, until the cleaner has been through."""

    connection: Connection
    admin: AdminClient
    topic: str
    rule: RollRule
    delete_retention_ms: int
    min_lag_ms: int
    at_step: Callable[[str], None]
    # Raises when nobody waits any more.
    check_wanted: Callable[[], None]

    def run(self, signs: Signs, before: Mapping[int, Census], *, timeout_s: float) -> set[int]:
        """The partitions that the cleaner has been through, with their tombstones gone if that fits into the time."""
        began = time.monotonic()
        give_up_at = began + timeout_s
        self.at_step("nudge")
        with nudger(self.connection, self.topic) as producer, peeker(self.connection) as consumer:
            cleaned = self._once(producer, consumer, signs, give_up_at)
            met_at = time.monotonic()
            tombstones = {p: at for p in cleaned if (at := before[p].last_tombstone_offset) is not None}
            staying = set(tombstones) - gone(consumer, self.topic, tombstones)
            # The first cleaning has only marked these. A second one will take about as long as the first.
            ripe_at = met_at + (self.delete_retention_ms + self.min_lag_ms) / 1000
            if staying and ripe_at + (met_at - began) < give_up_at:
                self._rest(self.delete_retention_ms / 1000)
                self.at_step("nudge")
                self._once(producer, consumer, dict.fromkeys(staying), give_up_at)
        return cleaned

    def _once(self, producer: Producer, consumer: Consumer, signs: Signs, give_up_at: float) -> set[int]:
        witnesses = self._nudge(producer, signs)
        waiting = {p: witnesses[p] if sign is None else sign for p, sign in signs.items()}
        self.at_step("wait")
        pause_s, patience_s = 0.05, _SECOND_NUDGE_AFTER_S
        nudge_again_at = time.monotonic() + patience_s
        while waiting and time.monotonic() < give_up_at:
            self._rest(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            for partition in gone(consumer, self.topic, waiting):
                del waiting[partition]
            if waiting and time.monotonic() > nudge_again_at:
                self.at_step("nudge")
                self._nudge(producer, waiting)
                patience_s *= 2
                nudge_again_at = time.monotonic() + patience_s
        return set(signs) - set(waiting)

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self.check_wanted()
            time.sleep(min(left_s, _LONGEST_PAUSE_S))

    def _nudge(self, producer: Producer, partitions: Mapping[int, object]) -> dict[int, int]:
        return nudge(
            producer,
            self.admin,
            self.topic,
            partitions=list(partitions),
            rule=self.rule,
            before_abort=lambda: self.at_step("abort"),
        )
