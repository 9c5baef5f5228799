"""How far a session is from ready: each partition has to reach the end that it had when the session began.

Meanwhile compaction may remove an unread record, because a later record of its key is past the goal. So
goals that took long to reach are set once more, and the table is ready when it reaches the new goals.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

from lastword.replica.building.long_work import Pace
from lastword.replica.state import State
from lastword.replica.store.store import Store

_FRESH_S = 2.0
_MOST_ROUNDS = 3


class CatchUp:
    """A table is as ready as its least ready partition."""

    def __init__(self, topic: str, store: Store, transaction_patience_s: float, *, fresh_s: float = _FRESH_S) -> None:
        self._topic = topic
        self._store = store
        self._patience_s = transaction_patience_s
        # Goals that took longer than this are set once more.
        self._fresh_s = fresh_s
        # High watermarks still to be reached.
        self._goals: dict[int, int] = {}
        # Partitions where committed data ends before the goal: the goal, and until when the session waits for it.
        self._held_back: dict[int, tuple[int, float]] = {}
        self._pace, self._total = Pace(), 0
        self._rounds = 0
        self._expected_at = 0.0
        self._settled = False

    def expect(self, goals: Mapping[int, int]) -> None:
        """Adds goals: the table is ready only when they are reached, too."""
        self._goals.update(goals)
        self._pace, self._total = Pace(), self._left()
        self._rounds += 1
        self._expected_at = time.monotonic()
        self._settled = False

    def start_over(self, goals: Mapping[int, int]) -> None:
        """Sets goals after the session was away, as at its start."""
        self._rounds = 0
        self.expect(goals)

    @property
    def wants_new_goals(self) -> bool:
        """Whether the goals were reached so late that the topic may end much further on."""
        return not self._goals and not self._settled

    def note(self, partition: int, stable_end: int) -> None:
        """The partition is read to the end of the committed records, and swept if it had to be."""
        goal = self._goals.get(partition)
        position = self._store.partitions[partition].position
        if goal is not None and position >= goal:
            del self._goals[partition]
        elif goal is not None and position >= stable_end:
            self._held_back.setdefault(partition, (goal, time.monotonic() + self._patience_s))
        self._settle()

    def _settle(self) -> None:
        if not self._goals and not self._settled:
            in_time = time.monotonic() - self._expected_at <= self._fresh_s
            self._settled = in_time or self._rounds >= _MOST_ROUNDS

    def state(self, why: str | None = None) -> State:
        uncertain = any(state.deletes_uncertain for state in self._store.partitions.values())
        deletes: Literal["certain", "uncertain"] = "uncertain" if uncertain else "certain"
        why = why or self._open_transaction()
        if not self._goals and not self.wants_new_goals:
            return State(name="ready", why=why, deletes=deletes)
        done = self._total - self._left()
        return State(
            name="catching-up",
            why=why,
            done=done,
            total=self._total,
            seconds_left=self._pace.seconds_left(done, self._total),
            deletes=deletes,
        )

    def _open_transaction(self) -> str | None:
        """The open transaction that holds the table back; after a while the table is ready without it."""
        now, partitions = time.monotonic(), self._store.partitions
        for partition, (goal, patience_ends) in list(self._held_back.items()):
            if partitions[partition].position >= goal:
                del self._held_back[partition]
            elif now >= patience_ends and self._goals.pop(partition, None) is not None:
                self._settled = self._settled or not self._goals
        if not self._held_back:
            return None
        partition = min(self._held_back)
        return (
            f"a transaction is open in {self._topic}[{partition}] since offset {partitions[partition].position}, and "
            "nothing after it is committed yet: find its writer with  kafka-transactions.sh find-hanging"
        )

    def _left(self) -> int:
        partitions = self._store.partitions
        return sum(max(0, goal - partitions[partition].position) for partition, goal in self._goals.items())
