"""The store in a replica's folder: opened, built, replaced, and set aside when it is damaged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from lastword.core.clock import now_ms
from lastword.core.codecs import Codec, readable_by
from lastword.core.errors import ReplicaUnusable, StoreDamaged
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_snapshot import TopicSnapshot
from lastword.replica.damage_log import DamageLog
from lastword.replica.folder import ReplicaFolder
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
from lastword.replica.store.identity import Identity, OlderFormat
from lastword.replica.store.row_layout import partition_state_at
from lastword.replica.store.store import Store

_log = logging.getLogger(__name__)


class OwnedStore:
    """Used by one thread; `on_damage` is called by whichever thread finds damage, with the store it found it in."""

    def __init__(
        self,
        topic: str,
        folder: Path,
        *,
        value_codec: Codec,
        settings: ReplicaSettings,
        steps: ReplicaSteps,
        on_damage: Callable[[Store, str], None],
    ) -> None:
        self._topic = topic
        self._readable = readable_by(value_codec)
        self._settings = settings
        self._steps = steps
        self._on_damage = on_damage
        self.folder = ReplicaFolder(folder)
        self.damage_log = DamageLog(folder)
        # How often damage was found since the replica was opened.
        self.damages_found = 0
        # None while there is no usable store.
        self.store: Store | None = None
        if self.folder.was_set_aside:
            self.damage_log.resume_healing("it was set aside")

    @property
    def is_right(self) -> bool:
        """Whether readers may see the store; the replacement of a damaged store only after it has caught up."""
        return self.store is not None and self.store.damage is None and self.damage_log.healing is None

    def open(self) -> bool:
        """Opens the current store if it is not open, and says whether it did; a damaged store is set aside."""
        if self.store is not None and self.store.damage is not None:
            self._set_aside(self.store.damage)
        elif self.store is not None and self.store.has_failed:
            store, self.store = self.store, None
            store.close()
        current = self.folder.current
        if self.store is not None or current is None:
            return False
        try:
            self.store = self._opened(current)
        except StoreDamaged as damage:
            self._set_aside(str(damage))
        except OlderFormat as older:
            _log.info("%s: building it again from the topic", older)
            self.folder.condemn()
        return self.store is not None

    def condemn(self) -> None:
        """The store is not the fold of the topic: no later start may open it."""
        self.folder.condemn()
        self.store = None

    def build(
        self,
        connection: Connection,
        identity: Identity,
        now: TopicSnapshot,
        *,
        progress: Callable[[int, int], None],
        stopping: threading.Event,
    ) -> Store:
        """A new store that replaces the current one: built by workers, or empty and at the log's start."""
        try:
            building = self._built(connection, identity, now, progress, stopping) or self._empty(identity, now)
            place = self.folder.adopt(building)
        except BaseException:
            # On a full disk it must not take space.
            self.folder.drop_buildings()
            raise
        self.store = self._opened(place)
        return self.store

    def close(self) -> None:
        self.folder.close()

    def _built(
        self,
        connection: Connection,
        identity: Identity,
        now: TopicSnapshot,
        progress: Callable[[int, int], None],
        stopping: threading.Event,
    ) -> Path | None:
        """A store that workers have filled; None where there is too little to read, or a key is in two partitions."""
        if now.offsets_to_read < self._steps.build_from_offsets:
            return None
        building = self.folder.new_building()
        is_built = self._steps.build(
            connection,
            identity,
            building,
            start=now.start,
            stop=now.stable,
            memory_mb=self._settings.memory_mb,
            progress=progress,
            stopping=stopping,
        )
        return building if is_built else None

    def _empty(self, identity: Identity, now: TopicSnapshot) -> Path:
        building = self.folder.new_building()
        store = Store(building, readable=self._readable)
        try:
            store.declare(identity)
            moment = now_ms()
            store.apply(
                [],
                {
                    p: partition_state_at(offset, log_start=offset, caught_up_at=moment)
                    for p, offset in now.start.items()
                },
            )
            store.flush()
        finally:
            store.close()
        return building

    def _opened(self, place: Path) -> Store:
        store = Store(
            place,
            readable=self._readable,
            most_last_good_bytes=self._settings.last_good_mb * 1024 * 1024,
            on_damage=self._on_damage,
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

    def _set_aside(self, damage: str) -> None:
        _log.warning("the store of %s in %s is damaged (%s): building it again", self._topic, self.folder.path, damage)
        self.damages_found += 1
        # First, because this needs no space: from now on the store is not opened, not even after a crash.
        self.folder.set_aside()
        self.damage_log.note(damage, now_ms())
        store, self.store = self.store, None
        if store is not None:
            # Scans under way continue to their end.
            store.close()
