"""Asks for the consumer groups every two seconds, in a thread: while a broker is away, an answer may take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from lastword.core.clock import now_ms
from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.group_members import groups_now
from lastword.kafka.topics.topic_description import EARLIEST, committed_ends, offsets
from lastword.processes.background_loop import BackgroundLoop
from lastword.teams.board.board_shapes import MOST_TEAMS
from lastword.teams.board.board_topics import USERS
from lastword.teams.board.judging import is_team_name
from lastword.teams.board.presence import Groups

_EVERY_S = 2.0


class GroupWatch:
    """`groups` has the last answer, or None before the first."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._looked = threading.Event()
        self.groups: Groups | None = None
        self.known: frozenset[str] = frozenset()  # names that come first if there are too many
        self._loop = BackgroundLoop("groups", self._watch)

    def start(self) -> None:
        self._loop.start()

    @property
    def has_looked(self) -> bool:
        return self._looked.is_set()

    def close(self) -> None:
        """Does not wait for a request under way: the answer may take long, and nobody needs it."""
        self._loop.ask_to_stop()

    def _watch(self) -> None:
        admin = self._connection.admin()
        while not self._loop.is_stopping:
            began = time.monotonic()
            try:
                topic = self._connection.reach(admin).topics.get(USERS)
                partitions = [] if topic is None else sorted(topic.partitions)
                at = now_ms()
                self.groups = Groups(
                    at=at,
                    groups=groups_now(self._connection, admin, USERS, partitions, self._chosen),
                    first=Position(offsets(self._connection, admin, USERS, partitions, EARLIEST)),
                    end=Position(committed_ends(self._connection, admin, USERS, partitions)),
                )
            except LastwordError:
                # The last answer becomes too old and then counts as unknown. A client that sent a request while the
                # cluster was away may never find the groups' coordinator again.
                admin = self._connection.admin()
            self._looked.set()
            # Many groups take long: at most a fifth of the time is spent on asking.
            self._loop.rest(max(_EVERY_S, 4 * (time.monotonic() - began)))

    def _chosen(self, names: Iterable[str]) -> list[str]:
        """The names that the board has room for, known teams first."""
        usable = sorted(filter(is_team_name, names), key=lambda name: (name not in self.known, name))
        return usable[:MOST_TEAMS]
