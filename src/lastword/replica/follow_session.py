"""Following a store's topic from where it stands, until the past moves or it is stopped.

Everything that was written before some moment has been read once a partition's position has reached where the
partition ended at that moment. The latest such moment is a place's `caught_up_at`. If offsets were missing among
those read since then, and it is longer ago than tombstones are kept, a tombstone may be what was missing: the
partition is swept before it counts as read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from lastword.core.clock import now_ms
from lastword.core.errors import BadInput, ClusterUnreachable, NotFound, PositionGone, StoreDamaged
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.feed import Feed, FeedBatch, LeaderEpoch
from lastword.kafka.topics.topic_snapshot import PendingProbe, TopicProbe, TopicSnapshot
from lastword.replica.catch_up import Arrival
from lastword.replica.expired_rows import Leaving
from lastword.replica.folder import ReplicaFolder
from lastword.replica.ghost_sweep import sweep
from lastword.replica.history_check import Moved, how_the_past_moved
from lastword.replica.settings import ReplicaSettings
from lastword.replica.state import State
from lastword.replica.store.row_layout import PartitionPlace, place_at
from lastword.replica.store.store import Identity, Store
from lastword.replica.watching import Watchers

Tell = Callable[[State, Position], None]

_HEAR_S = 0.1
_LOOK_AGAIN_S = 0.5
# So many times the usual pause between two looks: the process was stopped, or the machine slept.
_ABSENT_AFTER = 3


class FollowSession:
    """`tell` hears how it stands after every step, with the high watermarks as they are known."""

    def __init__(
        self,
        *,
        connection: Connection,
        lookout: TopicProbe,
        wanted: Identity,
        store: Store,
        folder: ReplicaFolder,
        watchers: Watchers,
        settings: ReplicaSettings,
        tell: Tell,
        stopping: threading.Event,
        curious: threading.Event,
    ) -> None:
        self._connection = connection
        self._lookout = lookout
        self._wanted = wanted
        self._store = store
        self._folder = folder
        self._watchers = watchers
        self._settings = settings
        self._tell = tell
        self._stopping = stopping
        self._curious = curious
        self._feed = Feed(connection, wanted.topic)
        self._arrival = Arrival(wanted.topic, store, settings.transaction_patience_s)
        self._leaving = Leaving(store)
        self._retention_ms = wanted.delete_retention_ms
        self._look_at = self._soonest_look_at = 0.0
        # Where each partition ended for readers of committed data, and when.
        self._ends: dict[int, tuple[int, int]] = {}
        # Moments of being at the end that are not in the store yet; that it knows an older one does no harm.
        self._at_end_ms: dict[int, int] = {}
        # When this session itself last saw each partition at its end.
        self._ended_ms: dict[int, int] = {}
        # Partitions of which something was heard: only then has the broker checked that our past is its past.
        self._confirmed: set[int] = set()
        self._sweep_after: dict[int, float] = {}
        self._every_s = settings.check_every_s
        self._looked_at = 0.0
        # A new start is a new chance for partitions that could not be swept quickly enough.
        self._to_sweep = {p for p, place in store.places.items() if place.deletes_uncertain}
        self._ledger = store.ledger
        self._away: str | None = None
        self._glance: PendingProbe | None = None
        self._in_doubt = False
        self._asked_from = store.position

    def follow(self, now: TopicSnapshot, looked_at: int) -> Moved | None:
        """Goes on until it is stopped, or gives the reason why the store can't."""
        with self._feed:
            self._take_in(now, looked_at)
            while not self._stopping.is_set():
                if self._store.damage is not None:
                    # Found by somebody who reads.
                    raise StoreDamaged(self._store.damage)
                self._say()
                heard = self._feed.poll(0 if self._leaving.is_under_way else _HEAR_S)
                if heard.past_moved is not None:
                    return Moved(why=f"the log was truncated ({heard.past_moved})")
                self._apply(heard)
                self._in_doubt = self._in_doubt or heard.doubtful or self._curious.is_set()
                self._curious.clear()
                moved = self._look_around()
                if moved is not None:
                    return moved
                self._remove_what_left()
            self._write_places()
        return None

    def _remove_what_left(self) -> None:
        """A slice of removing the rows whose records have left the topic, so that the feed is not kept waiting."""
        with self._watchers.committing():
            applied = self._leaving.step()
            if applied is not None:
                self._watchers.publish(applied, self._store.position, swept=True)

    def _look_around(self) -> Moved | None:
        """Whether the past moved, asked for now and then and when in doubt; the feed is not kept waiting meanwhile."""
        now = time.monotonic()
        if self._glance is None:
            due = self._look_at if not self._in_doubt else min(self._look_at, self._soonest_look_at)
            if self._arrival.wants_new_goals:
                due = self._soonest_look_at
            if now >= due:
                self._in_doubt, self._asked_from = False, self._store.position
                self._glance = self._lookout.look_in_background()
            return None
        if not self._glance.is_over:
            return None
        glance, self._glance = self._glance, None
        self._soonest_look_at = now + _LOOK_AGAIN_S
        try:
            seen = glance.result()
        except (ClusterUnreachable, NotFound) as away:
            # A state, and no more: whatever still comes is taken.
            self._away, self._look_at = str(away), self._soonest_look_at
            return None
        moved = how_the_past_moved(self._store, self._wanted, self._asked_from, seen)
        if moved is None:
            if self._away is not None or now - self._looked_at > _ABSENT_AFTER * self._every_s:
                self._arrival.start_over(seen.high)
            self._away = None
            self._take_in(seen, glance.asked_at)
        return moved

    def _take_in(self, now: TopicSnapshot, looked_at: int) -> None:
        """What a look told: partitions to follow, where they end, how long tombstones stay."""
        stored = self._store.identity
        self._retention_ms = min(stored.delete_retention_ms, now.delete_retention_ms)
        # At least three looks while a tombstone is kept, or an idle partition would seem to have been left alone.
        self._every_s = min(self._settings.check_every_s, max(1.0, self._retention_ms / 3000))
        self._looked_at = time.monotonic()
        self._look_at = self._looked_at + self._every_s
        self._ends = {partition: (end, looked_at) for partition, end in now.stable.items()}
        self._follow_new_partitions(now, looked_at)
        self._leaving.note(now.start)
        if self._arrival.wants_new_goals:
            self._arrival.expect(now.high)
        self._arrive(self._confirmed, at_end={}, seen_at=looked_at)
        self._write_places()
        # A longer one counts from when everything was read that was written under the shorter one.
        longer = now.delete_retention_ms > stored.delete_retention_ms and self._store.position.covers(now.stable)
        if longer or now.delete_retention_ms < stored.delete_retention_ms:
            self._store.declare(replace(stored, delete_retention_ms=now.delete_retention_ms))

    def _follow_new_partitions(self, now: TopicSnapshot, looked_at: int) -> None:
        added = [partition for partition in now.high if partition not in self._feed.partitions]
        if not added:
            return
        unknown = [p for p in added if p not in self._store.places]
        self._store.apply(
            [], {p: place_at(now.start[p], log_start=now.start[p], caught_up_at=looked_at) for p in unknown}
        )
        places = self._store.places
        self._arrival.expect({p: now.high[p] for p in added})
        self._feed.add(
            {p: places[p].position for p in added},
            {
                p: LeaderEpoch(places[p].leader_epoch, places[p].epoch_end)
                for p in added
                if places[p].leader_epoch >= 0 and places[p].epoch_end >= now.start[p]
            },
        )

    def _apply(self, heard: FeedBatch) -> None:
        if heard.reached:
            places = {}
            for partition, position in heard.reached.items():
                old = self._store.places[partition]
                epoch = heard.leader_epochs.get(partition, LeaderEpoch(old.leader_epoch, old.epoch_end))
                places[partition] = old._replace(
                    position=position,
                    leader_epoch=epoch.number,
                    epoch_end=epoch.end,
                    caught_up_at=max(old.caught_up_at, self._at_end_ms.pop(partition, 0)),
                    holes=old.holes or partition in heard.holes,
                )
            with self._watchers.committing():
                applied = self._store.apply(heard.records, places)
                self._watchers.publish(applied, self._store.position)
        if heard.at_end or heard.reached:
            self._confirmed |= {*heard.at_end, *heard.reached}
            self._arrive({*heard.at_end, *heard.reached}, at_end=heard.at_end, seen_at=heard.not_before)

    def _arrive(self, partitions: Collection[int], *, at_end: Collection[int], seen_at: int) -> None:
        """Notes which of the partitions are read to an end, and sweeps where reading on was not enough."""
        for partition in partitions:
            place = self._store.places[partition]
            end, ended_at = self._ends[partition]
            if partition not in at_end and place.position < end:
                continue
            moment = seen_at if partition in at_end else ended_at
            if self._needs_sweep(partition, place):
                if time.monotonic() < self._sweep_after.get(partition, 0.0):
                    # Where tombstones live for a moment only, every transaction would ask for one: it waits for a look.
                    continue
                self._sweep(partition)
                place = self._store.places[partition]
            if place.holes:
                self._store.apply([], {partition: place._replace(caught_up_at=moment, holes=False)})
            self._at_end_ms[partition] = max(moment, self._at_end_ms.get(partition, 0))
            first = partition not in self._ended_ms
            self._ended_ms[partition] = max(moment, self._ended_ms.get(partition, 0))
            if first:
                self._note_moment()
            self._arrival.note(partition, end)

    def _needs_sweep(self, partition: int, place: PartitionPlace) -> bool:
        away_ms = now_ms() - place.caught_up_at
        # A clock that was set back tells nothing.
        return partition in self._to_sweep or (place.holes and not 0 <= away_ms <= self._retention_ms)

    def _sweep(self, partition: int) -> None:
        self._to_sweep.discard(partition)
        self._sweep_after[partition] = time.monotonic() + self._every_s
        self._say(f"sweeping {self._wanted.topic}[{partition}], where tombstones may have gone unread")
        try:
            for applied in sweep(
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

    def _write_places(self) -> None:
        """The moments of being at the end, into the store, and into the ledger when it is time."""
        places = self._store.places
        moved = {
            p: places[p]._replace(caught_up_at=max(places[p].caught_up_at, at)) for p, at in self._at_end_ms.items()
        }
        self._store.apply([], moved)
        self._at_end_ms.clear()
        self._note_moment()

    def _note_moment(self) -> None:
        # Not by what the store says: a new one is caught up with nothing, and all that it has yet to read may be old.
        if self._ended_ms.keys() == self._store.places.keys():
            moment = min(self._ended_ms.values())
            if self._ledger.note(moment, self._store.position, span_ms=self._retention_ms):
                self._store.keep(self._ledger)

    def _say(self, why: str | None = None) -> None:
        state = self._arrival.state(why)
        if self._leaving.is_behind_first_look and state.name == "ready":
            why = f"removing rows whose records have left {self._wanted.topic} at its start"
            state = replace(state, why=why)
        if why is not None:
            state = replace(state, name="catching-up")
        if self._away is not None:
            state = replace(state, name="connecting", why=self._away, done=0, total=0, seconds_left=None)
        self._tell(state, self._feed.ends())
