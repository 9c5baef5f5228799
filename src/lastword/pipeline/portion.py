"""Evaluated records of one source partition, collected until they are worth a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from lastword.kafka.transactions import Outgoing
from lastword.pipeline.evaluation import Counter
from lastword.pipeline.progress import Progress
from lastword.pipeline.verdicts import SourceField, fault_of

# Headers of what a pipeline writes: the record that it comes from, the rule, and why a record was rejected.
SOURCE_HEADER = "source"
RULE_HEADER = "rule"
REASON_HEADER = "reason"

# What a record takes beside its key, value and headers at most: the frame of its batch.
_FRAME_BYTES = 200
# A schema may have many fields that are missing.
_REASON_BYTES = 500
# A batch of many records may be as large as this, where the topics take as much.
_BATCH_BYTES = 1024**2


Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, kw_only=True)
class Outlet:
    """Where results go; it travels to the workers."""

    source: str
    fields: tuple[SourceField, ...]
    rejects: str
    rules: tuple[tuple[str, str], ...]  # of each rule: its name, and the topic it emits to
    counters: tuple[Counter, ...]
    limits: Mapping[str, int]  # of each topic: the bytes that it takes in a batch

    @property
    def batch_bytes(self) -> int:
        """As large as a batch may be: the topics' limits are for a batch, and ours would be refused as a whole."""
        return min(_BATCH_BYTES, *(limit - _FRAME_BYTES for limit in self.limits.values()))


class Portion:
    """The results of records that follow each other in a partition."""

    def __init__(self, outlet: Outlet, partition: int) -> None:
        self._outlet = outlet
        self._partition = partition
        self._matches = numpy.zeros(len(outlet.rules), dtype="i8")
        self._increments = [0] * sum(counter.increment is not None for counter in outlet.counters)
        self._next_offset = 0
        self._valid = 0
        self._rejected = 0
        self.outgoing: list[Outgoing] = []
        self.records = 0
        self.bytes = 0

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Takes rows of `evaluation.evaluated`, in offset order."""
        self.records += batch.num_rows
        self.bytes += batch.nbytes
        self._next_offset = batch.column("offset")[-1].as_py() + 1
        if batch.column("doubt").true_count:
            batch = self._without_rejects(batch)
        self._valid += batch.num_rows
        self._add_emitted(batch.column("emitted"), batch.column("offset").to_numpy())
        self._add_increments(batch.column("increments"))

    def after(self, progress: Progress) -> Progress:
        """The progress once this portion is written, too."""
        counters = {table: {rule: dict(sums) for rule, sums in of.items()} for table, of in progress.counters.items()}
        for counter in self._outlet.counters:
            name, _ = self._outlet.rules[counter.rule]
            sums = counters.setdefault(counter.table, {}).setdefault(name, {})
            sums[counter.name] = sums.get(counter.name, 0) + self._growth(counter)
        return replace(
            progress,
            next_offset=self._next_offset,
            valid=progress.valid + self._valid,
            rejected=progress.rejected + self._rejected,
            counters=counters,
        )

    def _growth(self, counter: Counter) -> int:
        if counter.increment is not None:
            return self._increments[counter.increment]
        matches = int(self._matches[counter.rule])
        return counter.when_matched * matches + counter.when_missed * (self._valid - matches)

    def _add_emitted(self, emitted: pyarrow.ListArray, offsets: Any) -> None:
        rows = pyarrow.compute.list_parent_indices(emitted).to_numpy()
        # flatten, and not field: that one forgets where a slice begins.
        rules, keys, values = emitted.flatten().flatten()
        numbers = rules.to_numpy()
        self._matches += numpy.bincount(numbers, minlength=len(self._matches))
        of_rules = [(topic, name.encode()) for name, topic in self._outlet.rules]
        for rule, key, value, offset in zip(
            numbers.tolist(), keys.to_pylist(), values.to_pylist(), offsets[rows].tolist(), strict=True
        ):
            topic, name = of_rules[rule]
            headers = [(SOURCE_HEADER, self._place(offset)), (RULE_HEADER, name)]
            self._write(Outgoing(topic, value, key, headers))

    def _write(self, record: Outgoing) -> None:
        limit, size = self._outlet.limits[record.topic], _size(record)
        if size > limit:
            reason = f"the record for {record.topic} has {size} bytes, and it takes {limit}"
            self._reject(record.key, record.value, record.headers or [], reason)
        else:
            self.outgoing.append(record)

    def _reject(self, key: bytes | None, value: bytes | None, headers: Headers, reason: str) -> None:
        """With as much of the value and the key as the topic takes; all of it is in the source."""
        told = reason.encode()[:_REASON_BYTES]
        record = Outgoing(self._outlet.rejects, b"", b"", [*headers, (REASON_HEADER, told)])
        room = self._outlet.limits[record.topic] - _size(record)
        kept_key = None if key is None else key[:room]
        kept_value = None if value is None else value[: room - len(kept_key or b"")]
        self.outgoing.append(record._replace(key=kept_key, value=kept_value))

    def _add_increments(self, increments: pyarrow.ListArray) -> None:
        if self._increments:
            # As Python's numbers, which have no end.
            columns = increments.flatten().to_numpy().reshape(len(increments), len(self._increments)).T
            self._increments = [
                before + sum(column.tolist()) for before, column in zip(self._increments, columns, strict=True)
            ]

    def _without_rejects(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Rejects what is in doubt and turns out to be wrong, and gives the other rows."""
        is_valid = numpy.ones(batch.num_rows, dtype=bool)
        for row in numpy.flatnonzero(batch.column("doubt").to_numpy(zero_copy_only=False)).tolist():
            key, value, unread = (batch.column(name)[row].as_py() for name in ("key", "value", "unread"))
            is_readable = batch.column("emitted")[row].is_valid
            fault = fault_of(value, self._outlet.fields, unread=unread, is_readable=is_readable)
            if fault is not None:
                is_valid[row] = False
                place = self._place(batch.column("offset")[row].as_py())
                self._reject(key, value, [(SOURCE_HEADER, place)], fault)
                self._rejected += 1
        return batch.filter(pyarrow.array(is_valid))

    def _place(self, offset: int) -> bytes:
        return f"{self._outlet.source}/{self._partition}/{offset}".encode()


def _size(record: Outgoing) -> int:
    headers = sum(len(name) + len(text) + 10 for name, text in record.headers or ())
    return len(record.key or b"") + len(record.value or b"") + headers + _FRAME_BYTES
