"""The start of a driver: it takes over from whoever ran the pipeline before, and learns where to go on.

It takes the transactional id of every partition, which ends any task of a predecessor, and only then reads the
progress. What it writes, under the next generation, tells tasks of a predecessor that come later to end.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from lastword.core.errors import SourceGap
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import topic_identity
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.client.transactions import Transactions
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.parallel import for_each
from lastword.pipeline.running.progress import (
    PartitionProgress,
    StoredProgress,
    newest_progress,
    position_of,
    progress_record,
    refuse_newer,
    transactional_id,
)

Choice = Literal["earliest", "latest"]


def new_owner() -> str:
    """A name for a driver that no other has, also none of the same process."""
    return f"process {os.getpid()} on {socket.gethostname()}, run {uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A pipeline that is ours: the generation, the topics it is about, and the progress of every source partition."""

    generation: int
    source_id: str
    changelog_id: str
    kept: Mapping[int, StoredProgress]
    skipped: tuple[str, ...]  # what was passed over because it was chosen so, in words

    @property
    def position(self) -> Position:
        """Where the source is read on."""
        return position_of({partition: kept.progress for partition, kept in self.kept.items()})


def take_over(
    connection: Connection,
    plan: Pipeline,
    *,
    owner: str,
    choice: Choice | None = None,
    mine: int | None = None,
    reached: Mapping[int, PartitionProgress] = MappingProxyType({}),
) -> Taken:
    """Takes the pipeline over; TakenOver if another owner has done so since generation `mine`.

    `reached` is what is known to have been committed: SourceGap when the changelog has lost it.
    Where a partition can't go on, because its records are gone or the source is another one now, `choice` says where
    to begin; without one SourceGap tells what is wrong. It also says where a pipeline without any progress begins,
    which is else the earliest record; a partition that was added begins with its first.
    """
    partitions = sorted(connection.topic(plan.source.topic).partitions)

    def read(partition: int) -> StoredProgress | None:
        kept = newest_progress(connection, plan.changelog, partition)
        # A takeover of ours that did not come to its end is no successor.
        if kept is not None and mine is not None and kept.progress.owner != owner:
            refuse_newer(plan.app, kept.progress, mine)
        return kept

    # Before it takes an id from its successor, which would have to begin anew.
    if mine is not None:
        for_each(partitions, read)
    holders = for_each(partitions, lambda p: Transactions(connection, transactional_id(plan.app, p)))
    try:
        found = for_each(partitions, read)
        for partition, kept in found.items():
            if partition in reached:
                _refuse_lost(plan.changelog, partition, reached[partition], kept)
        # After that: nobody else writes progress any more that could lie past it.
        source = _Source.now(connection, plan.source.topic, choice)
        begins = source.beginnings(
            {partition: None if kept is None else kept.progress for partition, kept in found.items()}, owner
        )

        def written(partition: int) -> StoredProgress:
            progress = begins[partition]
            offset = holders[partition].write([], progress_record(plan.changelog, partition, progress))
            return StoredProgress(progress=progress, offset=offset)

        taken = for_each(partitions, written)
    finally:
        for_each(holders.values(), Transactions.close)
    generation = max(progress.generation for progress in begins.values())
    return Taken(
        generation=generation,
        source_id=source.identity,
        changelog_id=topic_identity(connection.admin(), plan.changelog),
        kept=taken,
        skipped=tuple(source.skipped),
    )


def _refuse_lost(changelog: str, partition: int, reached: PartitionProgress, found: StoredProgress | None) -> None:
    if found is not None and (
        found.progress.source_id != reached.source_id or found.progress.next_offset >= reached.next_offset
    ):
        return
    says = "nothing" if found is None else f"offset {found.progress.next_offset}"
    raise SourceGap(
        f"{changelog}[{partition}] has lost records: it says {says}, and offset {reached.next_offset} was reached: "
        "what lies between would be written again; bring the topic back, or start the pipeline again to accept that"
    )


class _Source:
    """The source as it is now, and what was said about where to begin."""

    def __init__(self, *, topic: str, identity: str, first: Position, last: Position, choice: Choice | None) -> None:
        self._topic = topic
        self.identity = identity
        self._first = first
        self._last = last
        self._choice = choice
        self.skipped: list[str] = []

    @staticmethod
    def now(connection: Connection, topic: str, choice: Choice | None) -> _Source:
        first, last = log_bounds(connection, topic)
        identity = topic_identity(connection.admin(), topic)
        return _Source(topic=topic, identity=identity, first=first, last=last, choice=choice)

    def beginnings(self, found: Mapping[int, PartitionProgress | None], owner: str) -> dict[int, PartitionProgress]:
        """What each partition begins with, in the next generation; all are judged before the first is written."""
        known = [progress for progress in found.values() if progress is not None]
        generation = 1 + max((progress.generation for progress in known), default=0)
        return {
            partition: replace(self._beginning(partition, before, is_new=not known), generation=generation, owner=owner)
            for partition, before in found.items()
        }

    def _beginning(self, partition: int, before: PartitionProgress | None, *, is_new: bool) -> PartitionProgress:
        """The progress to begin with; SourceGap when there is no telling where."""
        if before is None:
            start = self._chosen(partition) if is_new else self._first[partition]
            return PartitionProgress(next_offset=start, source_id=self.identity, generation=0, owner="")
        wrong = self._wrong(partition, before)
        if wrong is None:
            return before
        if self._choice is None:
            raise SourceGap(
                f"{self._topic}[{partition}]: {wrong}: run it with  --from earliest  to go on at the first record "
                "there is, or  --from latest  to go on with new ones; the counters stay"
            )
        # What lies before a log's end that has come back was read already.
        is_shorter = before.source_id == self.identity and before.next_offset > self._last[partition]
        start = self._last[partition] if is_shorter else self._chosen(partition)
        self.skipped.append(f"{self._topic}[{partition}]: {wrong}: it goes on at offset {start}, as chosen")
        return replace(before, next_offset=start, source_id=self.identity)

    def _chosen(self, partition: int) -> int:
        return self._last[partition] if self._choice == "latest" else self._first[partition]

    def _wrong(self, partition: int, before: PartitionProgress) -> str | None:
        reached, first, last = before.next_offset, self._first[partition], self._last[partition]
        if before.source_id != self.identity:
            return f"the topic was deleted and made again since offset {reached} was reached"
        if reached < first:
            return f"the records from offset {reached} up to {first} expired before they were read"
        if reached > last:
            return f"it ends at {last}, and was read up to {reached} before: records were lost"
        return None
