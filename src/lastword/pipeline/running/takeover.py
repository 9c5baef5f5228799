"""The takeover: a driver starts, stops the tasks of the driver before it, and learns where to continue.

It takes the transactional id of every partition, which stops any task of a predecessor, and only then reads the
progress. It writes the progress under the next generation, so that later tasks of a predecessor stop too.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

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
    """A unique name for a driver, also within its process."""
    return f"process {os.getpid()} on {socket.gethostname()}, run {uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The result of a takeover: the generation, the identity of the topics, the progress of every partition."""

    generation: int
    source_id: str
    changelog_id: str
    stored: Mapping[int, StoredProgress]
    skipped: tuple[str, ...]  # a line for each partition that skips records because of the choice

    @property
    def position(self) -> Position:
        """Where reading of the source continues."""
        return position_of({partition: stored.progress for partition, stored in self.stored.items()})


def take_over(
    connection: Connection,
    plan: Pipeline,
    *,
    owner: str,
    choice: Choice | None = None,
    mine: int | None = None,
    reached: Mapping[int, PartitionProgress] = MappingProxyType({}),
) -> Taken:
    """Takes the pipeline over; TakenOver if another owner has taken it since generation `mine`.

    `reached` is committed progress: SourceGap if the changelog has lost it.
    If a partition can't continue, because its records are gone or the source was created again, `choice` says where
    to start; without a choice SourceGap says what is wrong. A pipeline without any progress starts at the choice too,
    by default at the earliest record. A partition that was added starts at its first record.
    """
    partitions = sorted(connection.topic(plan.source.topic).partitions)

    def read(partition: int) -> StoredProgress | None:
        stored = newest_progress(connection, plan.changelog, partition)
        # An unfinished takeover of this owner is no successor.
        if stored is not None and mine is not None and stored.progress.owner != owner:
            refuse_newer(plan.app, stored.progress, mine)
        return stored

    # Checked before an id is taken from a successor, which would then have to restart.
    if mine is not None:
        for_each(partitions, read)
    holders = for_each(partitions, lambda p: Transactions(connection, transactional_id(plan.app, p)))
    try:
        stored_by_partition = for_each(partitions, read)
        for partition, stored in stored_by_partition.items():
            if partition in reached:
                _refuse_lost(plan.changelog, partition, reached[partition], stored)
        # Read after the ids are taken: no other process writes progress now, so no progress is past these ends.
        source = _Source.now(connection, plan.source.topic, choice)
        starts = source.starts(
            {p: None if stored is None else stored.progress for p, stored in stored_by_partition.items()}, owner
        )

        def written(partition: int) -> StoredProgress:
            progress = starts[partition]
            offset = holders[partition].write([], progress_record(plan.changelog, partition, progress))
            return StoredProgress(progress=progress, offset=offset)

        taken = for_each(partitions, written)
    finally:
        for_each(holders.values(), Transactions.close)
    generation = max(progress.generation for progress in starts.values())
    return Taken(
        generation=generation,
        source_id=source.identity,
        changelog_id=topic_identity(connection.admin(), plan.changelog),
        stored=taken,
        skipped=tuple(source.skipped),
    )


def _refuse_lost(changelog: str, partition: int, reached: PartitionProgress, stored: StoredProgress | None) -> None:
    if stored is not None and (
        stored.progress.source_id != reached.source_id or stored.progress.next_offset >= reached.next_offset
    ):
        return
    found = "gone" if stored is None else f"offset {stored.progress.next_offset}"
    raise SourceGap(
        f"{changelog}[{partition}] has lost records: its progress is {found}, but offset {reached.next_offset} was "
        "reached: results between them would be written again; restore the topic, or start the pipeline again to "
        "accept that"
    )


class _Source:
    """The present ends of the source, and the choice where to start."""

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

    def starts(self, progress: Mapping[int, PartitionProgress | None], owner: str) -> dict[int, PartitionProgress]:
        """The progress that each partition starts with, in the next generation; decided before any is written."""
        existing = [each for each in progress.values() if each is not None]
        generation = 1 + max((each.generation for each in existing), default=0)
        return {
            partition: replace(self._start(partition, before, is_new=not existing), generation=generation, owner=owner)
            for partition, before in progress.items()
        }

    def _start(self, partition: int, before: PartitionProgress | None, *, is_new: bool) -> PartitionProgress:
        """The progress to start with; SourceGap if the partition can't continue and there is no choice."""
        if before is None:
            start = self._chosen(partition) if is_new else self._first[partition]
            return PartitionProgress(next_offset=start, source_id=self.identity, generation=0, owner="")
        wrong = self._wrong(partition, before)
        if wrong is None:
            return before
        if self._choice is None:
            raise SourceGap(
                f"{self._topic}[{partition}]: {wrong}: run it with  --from earliest  to continue at the first record "
                "there is, or  --from latest  to continue with new records; the counters stay"
            )
        # If the log got shorter, everything before its new end has been processed.
        is_shorter = before.source_id == self.identity and before.next_offset > self._last[partition]
        start = self._last[partition] if is_shorter else self._chosen(partition)
        self.skipped.append(f"{self._topic}[{partition}]: {wrong}: reading continues at offset {start}, as chosen")
        return replace(before, next_offset=start, source_id=self.identity)

    def _chosen(self, partition: int) -> int:
        return self._last[partition] if self._choice == "latest" else self._first[partition]

    def _wrong(self, partition: int, before: PartitionProgress) -> str | None:
        reached, first, last = before.next_offset, self._first[partition], self._last[partition]
        if before.source_id != self.identity:
            return f"the topic was deleted and created again after offset {reached} was reached"
        if reached < first:
            return f"the records from offset {reached} up to {first} expired before they were read"
        if reached > last:
            return f"the partition ends at {last}, but was read up to {reached}: records were lost"
        return None
