"""Failures of a replica in words, and how long it waits before it tries again."""

from __future__ import annotations

from pathlib import Path

from lastword.core.errors import DiskFull, LastwordError
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_snapshot import PendingProbe, TopicProbe
from lastword.replica.damage_log import MOST_DAMAGES
from lastword.replica.state import State

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


class RetryPauses:
    """Pauses that double until `reset`."""

    def __init__(self) -> None:
        self._pause_s = _FIRST_PAUSE_S

    def next_pause_s(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return pause_s

    def reset(self) -> None:
        self._pause_s = _FIRST_PAUSE_S


class TopicEndWatch:
    """The end of a topic, asked for while the replica pauses. A failure only means that the end is not known."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._probe: TopicProbe | None = None
        self._pending: PendingProbe | None = None
        # Whether the last question was answered.
        self.is_known = False

    def look(self) -> Position | None:
        """The high watermarks, if an answer has come since the last look."""
        try:
            if self._pending is None:
                self._probe = self._probe or TopicProbe(self._connection, self._topic)
                self._pending = self._probe.look_in_background()
            if not self._pending.is_over:
                return None
            answered, self._pending = self._pending, None
            self.is_known = False
            ends = answered.result().high
        except Exception:  # for example, no descriptor or no thread is left
            return None
        self.is_known = True
        return ends


def failed_state(failure: LastwordError, *, watches_end: bool) -> State:
    """The state until the next try."""
    if isinstance(failure, DiskFull):
        why = f"{failure}; the replica then continues by itself"
        public = "no space is left on the disk: the replica continues once there is space"
    else:
        why = f"{failure}; it tries again by itself"
        public = "the replica can't continue now, and tries again: see the server's log"
    return State(name="failed", why=why, public_why=public, watches_end=watches_end)


def damaged_too_often(folder: Path, last: str | None) -> State:
    return State(
        name="failed",
        why=f"its store in {folder} was damaged {MOST_DAMAGES} times within an hour (the last time: {last}): "
        "check the disk, then open the replica again; otherwise the replica tries again after the hour",
        public_why=f"its store was damaged {MOST_DAMAGES} times within an hour: check the server's disk, "
        "then start it again",
    )
