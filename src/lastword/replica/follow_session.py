"""Following a store's topic from its position, until the topic's history moves or the session is stopped.

Once a partition's position has reached the end that the partition had at some moment, everything that was written
before that moment has been read. The latest such moment is its `caught_up_at`. If offsets were missing since then, and
it is longer ago than tombstones are kept, a tombstone may be missing: the partition is swept before it counts as read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from msgspec import structs

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, ClusterUnreachable, NotFound, PositionGone, StoreDamaged
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed, FeedBatch, LeaderEpoch
from lastword.kafka.topics.topic_snapshot import PendingProbe, TopicProbe, TopicSnapshot
from lastword.replica.catch_up import CatchUp
from lastword.replica.expired_rows import ExpiredRows
from lastword.replica.folder import ReplicaFolder
from lastword.replica.history_check import HistoryMoved, history_moved
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
from lastword.replica.state import State
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PartitionState, partition_state_at
from lastword.replica.store.store import Store
from lastword.replica.watching import Watchers

Report = Callable[[State, Position], None]

_POLL_S = 0.1
_LOOK_AGAIN_S = 0.5
# If the pause between two checks is this many times longer than usual, the process was stopped or the machine slept.
_ABSENT_AFTER = 3


class FollowSession:
    """`report` gets the state after every step, with the known high watermarks."""

    def __init__(
        self,
        *,
        connection: Connection,
        probe: TopicProbe,
        identity: Identity,
        store: Store,
        folder: ReplicaFolder,
        watchers: Watchers,
        settings: ReplicaSettings,
        steps: ReplicaSteps,
        report: Report,
        stopping: threading.Event,
        recheck: threading.Event,
    ) -> None:
        self._connection = connection
        self._probe = probe
        self._identity = identity
        self._store = store
        self._folder = folder
        self._watchers = watchers
        self._settings = settings
        self._steps = steps
        self._report = report
        self._stopping = stopping
        self._recheck = recheck
        self._feed = Feed(connection, identity.topic)
        self._catch_up = CatchUp(identity.topic, store, settings.transaction_patience_s)
        self._expired_rows = ExpiredRows(store)
        self._retention_ms = identity.delete_retention_ms
        self._look_at = self._soonest_look_at = 0.0
        # Where each partition ended for readers of committed data, and when.
        self._ends: dict[int, tuple[int, int]] = {}
        # Moments at the end that are not in the store yet; an older moment in the store does no harm.
        self._at_end_ms: dict[int, int] = {}
        # When this session last saw each partition at its end.
        self._ended_ms: dict[int, int] = {}
        # Partitions that the feed has answered for: only then has the broker checked the epoch of the last record.
        self._confirmed: set[int] = set()
        self._sweep_after: dict[int, float] = {}
        self._every_s = settings.check_every_s
        self._looked_at = 0.0
        # A new start is a new chance for partitions that could not be swept quickly enough.
        self._to_sweep = {p for p, state in store.partitions.items() if state.deletes_uncertain}
        self._ledger = store.ledger
        self._away: str | None = None
        self._pending_probe: PendingProbe | None = None
        self._in_doubt = False
        self._position_before = store.position

    def follow(self, now: TopicSnapshot, looked_at: int) -> HistoryMoved | None:
        """Follows until it is stopped, or returns why the store can't continue."""
        with self._feed:
            self._use_snapshot(now, looked_at)
            while not self._stopping.is_set():
                if self._store.damage is not None:
                    # Found by a reader.
                    raise StoreDamaged(self._store.damage)
                self._report_state()
                batch = self._feed.poll(0 if self._expired_rows.is_under_way else _POLL_S)
                if batch.past_moved is not None:
                    return HistoryMoved(why=f"the log was truncated ({batch.past_moved})")
                self._apply(batch)
                self._in_doubt = self._in_doubt or batch.doubtful or self._recheck.is_set()
                self._recheck.clear()
                moved = self._check_topic()
                if moved is not None:
                    return moved
                self._remove_expired_rows()
            self._write_caught_up()
        return None

    def _remove_expired_rows(self) -> None:
        """Removes a slice of the rows whose records have left the topic, so that the feed does not wait long."""
        with self._watchers.committing():
            applied = self._expired_rows.step()
            if applied is not None:
                self._watchers.publish(applied, self._store.position, swept=True)

    def _check_topic(self) -> HistoryMoved | None:
        """How the topic's history moved, or None. Checks from time to time, sooner in doubt, and never waits."""
        now = time.monotonic()
        if self._pending_probe is None:
            due = self._look_at if not self._in_doubt else min(self._look_at, self._soonest_look_at)
            if self._catch_up.wants_new_goals:
                due = self._soonest_look_at
            if now >= due:
                self._in_doubt, self._position_before = False, self._store.position
                self._pending_probe = self._probe.look_in_background()
            return None
        if not self._pending_probe.is_over:
            return None
        answered, self._pending_probe = self._pending_probe, None
        self._soonest_look_at = now + _LOOK_AGAIN_S
        try:
            seen = answered.result()
        except (ClusterUnreachable, NotFound) as away:
            # Only the state changes: records that still arrive are applied.
            self._away, self._look_at = str(away), self._soonest_look_at
            return None
        moved = history_moved(self._store, self._identity, self._position_before, seen)
        if moved is None:
            if self._away is not None or now - self._looked_at > _ABSENT_AFTER * self._every_s:
                self._catch_up.start_over(seen.high)
            self._away = None
            self._use_snapshot(seen, answered.asked_at)
        return moved

    def _use_snapshot(self, now: TopicSnapshot, looked_at: int) -> None:
        """Takes from a snapshot: the partitions to follow, their ends, and how long tombstones stay."""
        stored = self._store.identity
        self._retention_ms = min(stored.delete_retention_ms, now.delete_retention_ms)
        # At least three checks while a tombstone is kept, or an idle partition would seem unread for too long.
        self._every_s = min(self._settings.check_every_s, max(1.0, self._retention_ms / 3000))
        self._looked_at = time.monotonic()
        self._look_at = self._looked_at + self._every_s
        self._ends = {partition: (end, looked_at) for partition, end in now.stable.items()}
        self._follow_new_partitions(now, looked_at)
        self._expired_rows.note(now.start)
        if self._catch_up.wants_new_goals:
            self._catch_up.expect(now.high)
        self._note_ends(self._confirmed, at_end={}, seen_at=looked_at)
        self._write_caught_up()
        # A longer retention counts only after everything was read that was written under the shorter one.
        longer = now.delete_retention_ms > stored.delete_retention_ms and self._store.position.covers(now.stable)
        if longer or now.delete_retention_ms < stored.delete_retention_ms:
            self._store.declare(structs.replace(stored, delete_retention_ms=now.delete_retention_ms))

    def _follow_new_partitions(self, now: TopicSnapshot, looked_at: int) -> None:
        added = [partition for partition in now.high if partition not in self._feed.partitions]
        if not added:
            return
        unknown = [p for p in added if p not in self._store.partitions]
        self._store.apply(
            [], {p: partition_state_at(now.start[p], log_start=now.start[p], caught_up_at=looked_at) for p in unknown}
        )
        partitions = self._store.partitions
        self._catch_up.expect({p: now.high[p] for p in added})
        self._feed.add(
            {p: partitions[p].position for p in added},
            {
                p: LeaderEpoch(partitions[p].leader_epoch, partitions[p].epoch_end)
                for p in added
                if partitions[p].leader_epoch >= 0 and partitions[p].epoch_end >= now.start[p]
            },
        )

    def _apply(self, batch: FeedBatch) -> None:
        if batch.reached:
            partitions = {}
            for partition, position in batch.reached.items():
                old = self._store.partitions[partition]
                epoch = batch.leader_epochs.get(partition, LeaderEpoch(old.leader_epoch, old.epoch_end))
                partitions[partition] = old._replace(
                    position=position,
                    leader_epoch=epoch.number,
                    epoch_end=epoch.end,
                    caught_up_at=max(old.caught_up_at, self._at_end_ms.pop(partition, 0)),
                    holes=old.holes or partition in batch.holes,
                )
            with self._watchers.committing():
                applied = self._store.apply(batch.records, partitions)
                self._watchers.publish(applied, self._store.position)
        if batch.at_end or batch.reached:
            self._confirmed |= {*batch.at_end, *batch.reached}
            self._note_ends({*batch.at_end, *batch.reached}, at_end=batch.at_end, seen_at=batch.not_before)

    def _note_ends(self, partitions: Collection[int], *, at_end: Collection[int], seen_at: int) -> None:
        """Notes which of the partitions are read to their end, and sweeps where reading was not enough."""
        for partition in partitions:
            state = self._store.partitions[partition]
            end, ended_at = self._ends[partition]
            if partition not in at_end and state.position < end:
                continue
            moment = seen_at if partition in at_end else ended_at
            if self._needs_sweep(partition, state):
                if time.monotonic() < self._sweep_after.get(partition, 0.0):
                    # With a very short delete.retention.ms every transaction would cause a sweep: wait a while.
                    continue
                self._sweep(partition)
                state = self._store.partitions[partition]
            if state.holes:
                self._store.apply([], {partition: state._replace(caught_up_at=moment, holes=False)})
            self._at_end_ms[partition] = max(moment, self._at_end_ms.get(partition, 0))
            first = partition not in self._ended_ms
            self._ended_ms[partition] = max(moment, self._ended_ms.get(partition, 0))
            if first:
                self._note_moment()
            self._catch_up.note(partition, end)

    def _needs_sweep(self, partition: int, state: PartitionState) -> bool:
        away_ms = now_ms() - state.caught_up_at
        # A clock that was set back gives no answer.
        return partition in self._to_sweep or (state.holes and not 0 <= away_ms <= self._retention_ms)

    def _sweep(self, partition: int) -> None:
        self._to_sweep.discard(partition)
        self._sweep_after[partition] = time.monotonic() + self._every_s
        self._report_state(f"sweeping {self._identity.topic}[{partition}], where tombstones may have gone unread")
        try:
            for applied in self._steps.sweep(
                self._connection,
                self._store,
                self._folder,
                partition,
                retention_ms=self._retention_ms,
                stopping=self._stopping,
            ):
                self._watchers.publish(applied, self._store.position, swept=True)
        except BadInput as moved:
            raise PositionGone(str(moved)) from None

    def _write_caught_up(self) -> None:
        """Writes the moments at the end into the store, and into the ledger when it is time."""
        partitions = self._store.partitions
        moved = {
            p: partitions[p]._replace(caught_up_at=max(partitions[p].caught_up_at, at))
            for p, at in self._at_end_ms.items()
        }
        self._store.apply([], moved)
        self._at_end_ms.clear()
        self._note_moment()

    def _note_moment(self) -> None:
        # Not from the store: a new store counts as caught up, and the records that it has yet to read may be old.
        if self._ended_ms.keys() == self._store.partitions.keys():
            moment = min(self._ended_ms.values())
            if self._ledger.note(moment, self._store.position, span_ms=self._retention_ms):
                self._store.save_ledger(self._ledger)

    def _report_state(self, why: str | None = None) -> None:
        state = self._catch_up.state(why)
        if self._expired_rows.is_behind_first_look and state.name == "ready":
            why = f"removing rows whose records have left {self._identity.topic} at its start"
            state = replace(state, why=why)
        if why is not None:
            state = replace(state, name="catching-up")
        if self._away is not None:
            state = replace(state, name="connecting", why=self._away, done=0, total=0, seconds_left=None)
        self._report(state, self._feed.ends())
