"""The one thread that keeps a store at the end of its topic, builds it where there is none, and says how it stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lastword.core.clock import now_ms
from lastword.core.codecs import Codec, readable_by
from lastword.core.errors import ClusterUnreachable, HistoryLost, LastwordError, NotFound, PositionGone, ReplicaUnusable
from lastword.core.position import Position
from lastword.kafka.connection import Connection
from lastword.kafka.present import Lookout, Present
from lastword.replica.building import build
from lastword.replica.folder import ReplicaFolder
from lastword.replica.layout import Place
from lastword.replica.past import Moved, how_the_past_moved
from lastword.replica.session import Session
from lastword.replica.settings import ReplicaSettings
from lastword.replica.state import Pace, State, Stopped
from lastword.replica.store import Identity, Store
from lastword.replica.watching import Watchers

# Fewer offsets than this are read and folded in before worker processes have started.
_SMALL = 100_000
_RECONNECT_S = 0.5


class Follower:
    """Owns the folder and the store. `store` is None while there is nothing right to show."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        folder: Path,
        *,
        key_codec: Codec,
        value_codec: Codec,
        settings: ReplicaSettings,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._codecs = key_codec, value_codec
        self._settings = settings
        self.watchers = Watchers(settings.watch_capacity)
        # Notified whenever the state or the position changes.
        self.changed = threading.Condition()
        self.state = State(name="connecting")
        self.failure: LastwordError | None = None
        # Why it could not even begin, the last time.
        self.away: LastwordError | None = None
        self.ends = Position()
        self._away_since: float | None = time.monotonic()
        self._stopping = threading.Event()
        # Set by someone who has reason to think that the topic has changed.
        self.curious = threading.Event()
        self._moved: Moved | None = None
        self._folder = ReplicaFolder(folder)
        try:
            current = self._folder.current
            self.store = None if current is None else self._opened(current)
            self.watchers.restart(self.store.position if self.store is not None else Position())
        except BaseException:
            self._folder.close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"replica of {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        with self.changed:
            store, self.store = self.store, None
            self.state = State(name="failed", why="it is closed: open it again with  table.replica()")
            self.ends = Position()
            self.changed.notify_all()
        try:
            if store is not None:
                # Not needed to be right, but the next start has nothing to replay.
                with suppress(Exception):
                    store.flush()
                store.close()
        finally:
            self.watchers.close()
            self._folder.close()

    @property
    def away_for_s(self) -> float:
        """How long no cluster has answered; 0 when one does."""
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def _opened(self, place: Path) -> Store:
        store = Store(
            place, readable=readable_by(self._codecs[1]), last_good_bytes=self._settings.last_good_mb * 1024 * 1024
        )
        try:
            found = store.identity.topic
            if found != self._topic:
                raise ReplicaUnusable(
                    f"{place.parent} holds a replica of the topic {found!r}, not of {self._topic!r}: "
                    "give this one another folder"
                )
        except BaseException:
            store.close()
            raise
        return store

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._session()
            except Stopped:
                break
            except (ClusterUnreachable, NotFound, PositionGone) as away:
                self.away = away
                self._tell(State(name="connecting", why=str(away)))
                self._stopping.wait(_RECONNECT_S)
            except LastwordError as failure:
                self._fail(failure)
                break
            except Exception as surprise:
                # The thread must not end in silence. The rows that are there are right for their position.
                self._fail(
                    LastwordError(
                        f"the replica of {self._topic} in {self._folder.path} stopped ({type(surprise).__name__}: "
                        f"{surprise}): is the disk full? Put that right and open it again"
                    )
                )
                break

    def _session(self) -> None:
        lookout, looked_at = Lookout(self._connection, self._topic), now_ms()
        now = lookout.look()
        wanted = self._identity(now)
        known = self.store
        store = self._store_for(wanted, now)
        if store is not known:
            # Where the topic ends was asked for before it was read, and it may be another topic by now.
            looked_at, now = now_ms(), lookout.look()
            self._moved = how_the_past_moved(store, wanted, store.position, now)
            if self._moved is not None:
                return
        session = Session(
            connection=self._connection,
            lookout=lookout,
            wanted=wanted,
            store=store,
            folder=self._folder,
            watchers=self.watchers,
            settings=self._settings,
            tell=self._tell,
            stopping=self._stopping,
            curious=self.curious,
        )
        self._moved = session.follow(now, looked_at)

    def _store_for(self, wanted: Identity, now: Present) -> Store:
        """The store if it can go on, else a new one."""
        store, told = self.store, self._moved
        self._moved = None
        if store is None:
            return self._built(wanted, now, None)
        # What the topic looks like comes first: it tells a log that lost its start from one that lost its end.
        moved = how_the_past_moved(store, wanted, store.position, now) or told
        if moved is None:
            return store
        if moved.rows_are_right and self._settings.on_lost_records == "fail":
            raise HistoryLost(
                f"{moved.why}, so records were deleted that it never saw: start it with on_lost_records='rebuild'"
            )
        if not moved.rows_are_right:
            self._folder.condemn()
            self._show(None)
        del store
        return self._built(wanted, now, moved)

    def _built(self, wanted: Identity, now: Present, moved: Moved | None) -> Store:
        why = f"{moved.why}: building it again" if moved else "building"
        pace = Pace()

        def progress(done: int, total: int) -> None:
            left = pace.seconds_left(done, total)
            self._tell(State(name="catching-up", why=why, done=done, total=total, seconds_left=left), now.high)

        progress(0, now.offsets_to_read)
        try:
            place = self._folder.adopt(self._building(wanted, now, progress))
        except BaseException:
            # On a full disk it must not stand in the way.
            self._folder.drop_buildings()
            raise
        store = self._opened(place)
        self.watchers.restart(store.position, moved.why if moved else None)
        self._show(store)
        return store

    def _building(self, wanted: Identity, now: Present, progress: Callable[[int, int], None]) -> Path:
        """A whole store that is not yet in its place: folded by workers, or empty and at the log's start."""
        building = self._folder.new_building()
        if now.offsets_to_read >= _SMALL and build(
            self._connection,
            wanted,
            building,
            start=now.start,
            stop=now.stable,
            memory_mb=self._settings.memory_mb,
            progress=progress,
            stopping=self._stopping,
        ):
            return building
        building = self._folder.new_building()
        store = Store(building, readable=readable_by(self._codecs[1]))
        store.declare(wanted)
        moment = now_ms()
        store.apply([], {p: Place(position=offset, caught_up_at=moment) for p, offset in now.start.items()})
        store.flush()
        store.close()
        return building

    def _identity(self, now: Present) -> Identity:
        key_codec, value_codec = self._codecs
        return Identity(
            topic=self._topic,
            topic_id=now.topic_id,
            cluster_id=now.cluster_id,
            key_codec=key_codec.name,
            value_codec=value_codec.name,
            delete_retention_ms=now.delete_retention_ms,
        )

    def _show(self, store: Store | None) -> None:
        with self.changed:
            self.store = store
            self.changed.notify_all()

    def _tell(self, state: State, ends: Position | None = None) -> None:
        with self.changed:
            self.state = state
            if state.name != "connecting":
                self._away_since = None
            elif self._away_since is None:
                self._away_since = time.monotonic()
            if ends is not None:
                self.ends = ends
            self.changed.notify_all()

    def _fail(self, failure: LastwordError) -> None:
        self.failure = failure
        self._tell(replace(self.state, name="failed", why=str(failure)))
        self.watchers.close(failure)
