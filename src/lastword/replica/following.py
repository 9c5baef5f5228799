"""The one thread that keeps a store at the end of its topic, rebuilds it where needed, and reports the state."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lastword.core.clock import now_ms
from lastword.core.codecs import Codec
from lastword.core.errors import (
    ClusterUnreachable,
    DiskFull,
    HistoryLost,
    LastwordError,
    NotFound,
    PositionGone,
    StoreDamaged,
)
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_snapshot import TopicProbe, TopicSnapshot
from lastword.replica.building.long_work import Pace, Stopped
from lastword.replica.failures import RetryPauses, TopicEndWatch, damaged_too_often, failed_state
from lastword.replica.follow_session import FollowSession
from lastword.replica.history_check import HistoryMoved, history_moved
from lastword.replica.owned_store import OwnedStore
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
from lastword.replica.state import State
from lastword.replica.store.column_family import explained
from lastword.replica.store.identity import Identity
from lastword.replica.store.store import Store
from lastword.replica.watching import Watchers

_RECONNECT_S = 0.5
_LOOK_S = 1.0


class Follower:
    """Owns the folder and the store. Readers see `store`: None while there is no right store to show."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        folder: Path,
        *,
        key_codec: Codec,
        value_codec: Codec,
        settings: ReplicaSettings,
        steps: ReplicaSteps,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._codecs = key_codec, value_codec
        self._settings = settings
        self._steps = steps
        self.watchers = Watchers(settings.watch_capacity)
        # Notified whenever the state or the position changes.
        self.changed = threading.Condition()
        self.state = State(name="connecting")
        self.failure: LastwordError | None = None
        # The last error that interrupted it.
        self.away: LastwordError | None = None
        self.ends = Position()
        self._away_since: float | None = time.monotonic()
        self._stopping = threading.Event()
        # Set by a reader who has reason to think that the topic has changed: the topic is checked soon.
        self.recheck = threading.Event()
        self._moved: HistoryMoved | None = None
        self._backoff = RetryPauses()
        self.store: Store | None = None
        self._owned = OwnedStore(
            topic, folder, value_codec=value_codec, settings=settings, steps=steps, on_damage=self._hide_damaged
        )
        try:
            with suppress(DiskFull, OSError):  # the thread tries again, and reports the error
                self._open_store()
        except BaseException:
            self._owned.close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"replica of {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        with self.changed:
            store, self._owned.store, self.store = self._owned.store, None, None
            self.state = State(name="failed", why="it is closed: open it again with  table.replica()")
            self.ends = Position()
            self.changed.notify_all()
        try:
            if store is not None:
                # Not needed for correct rows, but the next start has nothing to replay.
                with suppress(Exception):
                    store.flush()
                store.close()
        finally:
            self.watchers.close()
            self._owned.close()

    @property
    def away_for_s(self) -> float:
        """For how long it has been interrupted; 0 while it follows."""
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def damages_found(self) -> int:
        """How often a store was found damaged since the replica was opened."""
        return self._owned.damages_found

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def _open_store(self) -> None:
        try:
            is_opened = self._owned.open()
        finally:
            self._publish_store()
        if is_opened and self._owned.store is not None:
            position, reason = self._owned.store.position, self._why_rebuilt
            if reason is not None:
                self.watchers.restart(position, reason)
            else:
                self.watchers.reopen(position, "its store was opened again at another position")

    @property
    def _why_rebuilt(self) -> str | None:
        """Why the next store that readers see is not the one that watchers know; None if it is the same."""
        healing = self._owned.damage_log.healing
        if healing is not None:
            return f"its store was damaged ({healing})"
        return None if self._moved is None else self._moved.why

    def _hide_damaged(self, store: Store, damage: str) -> None:
        """Hides a store at once when any thread finds damage; the following thread then sets it aside."""
        with self.changed:
            if store is not self._owned.store:
                return
            self.store = None
            if self.failure is None:
                self.state = State(name="rebuilding", why=f"its store is damaged: {damage}")
            else:
                # The thread has ended: nothing rebuilds the store.
                self.state = replace(self.state, why=f"{self.failure}; and its store is damaged: {damage}")
            self.changed.notify_all()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._session()
            except Stopped:
                break
            except (ClusterUnreachable, NotFound, PositionGone) as away:
                self.away = away
                self._report(State(name="connecting", why=str(away)))
                self._stopping.wait(_RECONNECT_S)
            except HistoryLost as failure:
                self._fail(failure)
                break
            except Exception as failure:
                # The thread must not end in silence. The stored rows are right for their position.
                store = self._owned.store
                if not (isinstance(failure, StoreDamaged) and store is not None and store.damage is not None):
                    self._wait_out(explained(failure, f"the replica of {self._topic} in {self._owned.folder.path}"))

    def _wait_out(self, failure: LastwordError) -> None:
        """Returns when it is time to try again; until then reports the failure and the topic's end. Never raises."""
        # Without its traceback, whose frames would keep objects alive.
        self.away = failure.with_traceback(None)
        self._report(failed_state(failure, watches_end=False))
        if isinstance(failure, DiskFull):
            with suppress(OSError):
                self._owned.folder.make_room()
        pause_ends = time.monotonic() + self._backoff.next_pause_s()
        end_watch = TopicEndWatch(self._connection, self._topic)
        while time.monotonic() < pause_ends or (isinstance(failure, DiskFull) and not self._has_room()):
            ends = end_watch.look()
            self._report(failed_state(failure, watches_end=end_watch.is_known), ends)
            if self._stopping.wait(_LOOK_S):
                return

    def _has_room(self) -> bool:
        try:
            return self._owned.folder.has_room
        except OSError:
            # The next try reports the error.
            return True

    def _leave_the_disk_alone(self) -> None:
        """Returns when a disk that damaged too many stores may be tried again. A new process tries at once."""
        while self.damages_found and self._owned.damage_log.pause_ms(now_ms()):
            self._report(damaged_too_often(self._owned.folder.path, self._owned.damage_log.healing))
            if self._stopping.wait(_LOOK_S):
                raise Stopped

    def _session(self) -> None:
        self._open_store()
        if self._owned.store is None:
            self._leave_the_disk_alone()
        probe, looked_at = TopicProbe(self._connection, self._topic), now_ms()
        now = probe.look()
        identity = self._identity(now)
        known = self._owned.store
        store = self._store_for(identity, now)
        if store is not known:
            # The snapshot is older than the read, and the topic may be another one by now.
            looked_at, now = now_ms(), probe.look()
            self._moved = history_moved(store, identity, store.position, now)
            if self._moved is not None:
                return
        session = FollowSession(
            connection=self._connection,
            probe=probe,
            identity=identity,
            store=store,
            folder=self._owned.folder,
            watchers=self.watchers,
            settings=self._settings,
            steps=self._steps,
            report=self._report,
            stopping=self._stopping,
            recheck=self.recheck,
        )
        self._moved = session.follow(now, looked_at)

    def _store_for(self, identity: Identity, now: TopicSnapshot) -> Store:
        """The open store if it can continue, else a new one."""
        store = self._owned.store
        if store is None:
            return self._built(identity, now)
        # The check of the snapshot counts first: it tells a log that lost its start from a log that lost its end.
        moved = history_moved(store, identity, store.position, now) or self._moved
        if moved is None:
            return store
        # Kept until watchers got the reason, even when the rebuild fails.
        self._moved = moved
        if moved.rows_are_right and self._settings.on_lost_records == "fail":
            raise HistoryLost(
                f"{moved.why}, so records were deleted that it never saw: start it with on_lost_records='rebuild'"
            )
        if not moved.rows_are_right:
            self._owned.condemn()
            self._publish_store()
        del store
        return self._built(identity, now)

    def _built(self, identity: Identity, now: TopicSnapshot) -> Store:
        reason = self._why_rebuilt
        why = f"{reason}: building it again" if reason else "building"
        pace = Pace()

        def progress(done: int, total: int) -> None:
            left = pace.seconds_left(done, total)
            self._report(State(name="catching-up", why=why, done=done, total=total, seconds_left=left), now.high)

        progress(0, now.offsets_to_read)
        store = self._owned.build(self._connection, identity, now, progress=progress, stopping=self._stopping)
        self.watchers.restart(store.position, reason)
        self._moved = None
        self._publish_store()
        return store

    def _identity(self, now: TopicSnapshot) -> Identity:
        key_codec, value_codec = self._codecs
        return Identity(
            topic=self._topic,
            topic_id=now.topic_id,
            cluster_id=now.cluster_id,
            key_codec=key_codec.name,
            value_codec=value_codec.name,
            delete_retention_ms=now.delete_retention_ms,
        )

    def _publish_store(self) -> None:
        """Shows readers the store that this thread works on; nothing while a damaged store is being replaced."""
        with self.changed:
            self.store = self._owned.store if self._owned.is_right else None
            self.changed.notify_all()

    def _report(self, state: State, ends: Position | None = None) -> None:
        if self._owned.damage_log.healing is not None:
            state = self._state_while_healing(state)
        if state.name == "ready":
            self._backoff.reset()
        with self.changed:
            if self._owned.store is not None and self._owned.store.damage is not None and state.name != "failed":
                return  # the damage is reported already, and nothing else matters now
            self.state = state
            if state.name not in ("connecting", "failed"):
                self._away_since = None
            elif self._away_since is None:
                self._away_since = time.monotonic()
            if ends is not None:
                self.ends = ends
            self.changed.notify_all()

    def _state_while_healing(self, state: State) -> State:
        if state.name == "ready":
            self._owned.damage_log.healed()
            self._publish_store()
            return state
        if state.name == "catching-up":
            return replace(state, name="rebuilding", why=f"its store was damaged ({self._owned.damage_log.healing})")
        return state

    def _fail(self, failure: LastwordError) -> None:
        self.failure = failure
        self._report(replace(self.state, name="failed", why=str(failure)))
        self.watchers.close(failure)
