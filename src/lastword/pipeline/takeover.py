"""The start of a driver: it takes over from whoever ran the pipeline before, and learns where to go on.

It takes the transactional id of every partition, which ends any task of a predecessor, and only then reads the
progress. What it writes, under the next generation, tells tasks of a predecessor that come later to end.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from lastword.core.errors import SourceGap, TakenOver
from lastword.core.position import Position
from lastword.kafka.connection import Connection
from lastword.kafka.live_settings import topic_identity
from lastword.kafka.reading import log_bounds
from lastword.kafka.transactions import Outgoing, Transactions
from lastword.pipeline.plan import Pipeline
from lastword.pipeline.progress import Kept, Progress, newest_progress, progress_key, transactional_id

Choice = Literal["earliest", "latest"]
_AT_ONCE = 8
_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A pipeline that is ours: the generation, and the progress of every source partition."""

    generation: int
    kept: Mapping[int, Kept]

    @property
    def position(self) -> Position:
        """Where the source is read on."""
        return Position({partition: kept.progress.next_offset for partition, kept in self.kept.items()})


def take_over(
    connection: Connection, plan: Pipeline, *, choice: Choice | None = None, mine: int | None = None
) -> Taken:
    """Takes the pipeline over; TakenOver if somebody has taken it since generation `mine`.

    Where a partition can't go on, because its records are gone or the source is another one now, `choice` says where
    to begin; without one SourceGap tells what is wrong. It also says where a pipeline without any progress begins,
    which is else the earliest record; a partition that was added begins with its first.
    """
    first, last = log_bounds(connection, plan.source.topic)
    source = _Source(
        topic=plan.source.topic,
        identity=topic_identity(connection.admin(), plan.source.topic),
        first=first,
        last=last,
        choice=choice,
    )
    holders = _for_each(last, lambda p: Transactions(connection, transactional_id(plan.app, p)))
    found = _for_each(last, lambda p: newest_progress(connection, plan.changelog, p))
    known = [kept.progress for kept in found.values() if kept is not None]
    newest = max(known, key=lambda progress: progress.generation, default=None)
    if newest is not None and mine is not None and newest.generation > mine:
        raise TakenOver(f"the pipeline {plan.app} was taken over by {newest.owner}")
    generation = 1 if newest is None else newest.generation + 1
    # All of them are judged before the first is written.
    begins = {
        partition: replace(
            source.beginning(partition, None if kept is None else kept.progress, is_new=not known),
            generation=generation,
            owner=f"process {os.getpid()} on {socket.gethostname()}",
        )
        for partition, kept in found.items()
    }

    def written(partition: int) -> Kept:
        progress = begins[partition]
        record = Outgoing(plan.changelog, progress.to_json(), progress_key(partition), partition=partition)
        return Kept(progress=progress, offset=holders[partition].write([], record))

    return Taken(generation=generation, kept=_for_each(last, written))


def _for_each(partitions: Iterable[int], make: Callable[[int], _Made]) -> dict[int, _Made]:
    """Each waits for the cluster several times: so several at once."""
    chosen = list(partitions)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(chosen, pool.map(make, chosen), strict=True))


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The source as it is now, and what was said about where to begin."""

    topic: str
    identity: str
    first: Position
    last: Position
    choice: Choice | None

    def beginning(self, partition: int, before: Progress | None, *, is_new: bool) -> Progress:
        """The progress to begin with; SourceGap when there is no telling where."""
        if before is None:
            start = self._chosen(partition) if is_new else self.first[partition]
            return Progress(next_offset=start, source_id=self.identity, generation=0, owner="")
        wrong = self._wrong(partition, before)
        if wrong is None:
            return before
        if self.choice is None:
            raise SourceGap(
                f"{self.topic}[{partition}]: {wrong}: run it with  --from earliest  to go on at the first record there "
                "is, or  --from latest  to go on with new ones; the counters stay"
            )
        return replace(before, next_offset=self._chosen(partition), source_id=self.identity)

    def _chosen(self, partition: int) -> int:
        return self.last[partition] if self.choice == "latest" else self.first[partition]

    def _wrong(self, partition: int, before: Progress) -> str | None:
        reached, first, last = before.next_offset, self.first[partition], self.last[partition]
        if before.source_id != self.identity:
            return f"the topic was deleted and made again since offset {reached} was reached"
        if reached < first:
            return f"the records from offset {reached} up to {first} expired before they were read"
        if reached > last:
            return f"it ends at {last}, and was read up to {reached} before: records were lost"
        return None
