"""Evaluated records of one source partition, collected until they are worth a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from lastword.kafka.client.transactions import OutgoingRecord, RecordFields
from lastword.pipeline.evaluation.evaluate import Counter, increment_of, key_of, value_of
from lastword.pipeline.evaluation.verdicts import fault_of
from lastword.pipeline.running.output_topics import FRAME_BYTES, OutputTopics
from lastword.pipeline.running.progress import PartitionProgress

# Headers of what a pipeline writes: the record that it comes from, the rule, and why a record was rejected.
SOURCE_HEADER = "source"
RULE_HEADER = "rule"
REASON_HEADER = "reason"

# A schema may have many fields that are missing.
_REASON_BYTES = 500


Header = tuple[str, bytes]
Headers = list[Header]


class TransactionBuffer:
    """The results of records that follow each other in a partition; with a `blame` they are all rejected."""

    def __init__(self, outlet: OutputTopics, partition: int, blame: str | None = None) -> None:
        self._outlet = outlet
        self._blame = blame
        self._places = f"{outlet.source}/{partition}/".encode()
        longest = [self._origin(2**63, name) for name, _ in outlet.rules]
        self._surely_fits = min(
            (outlet.limits[topic] - _size(None, None, headers))
            for (_, topic), headers in zip(outlet.rules, longest, strict=True)
        )
        self._matches = [0] * len(outlet.rules)
        self._increments = [0] * sum(counter.increment is not None for counter in outlet.counters)
        self.next_offset = 0
        self._valid = 0
        self._rejects: list[OutgoingRecord] = []
        self._rejected = 0
        self._batches: list[pyarrow.RecordBatch] = []
        self.records = 0
        self.bytes = 0

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Takes rows of `evaluation.evaluated`, in offset order."""
        self.records += batch.num_rows
        self.bytes += batch.nbytes
        self.next_offset = batch.column("offset")[-1].as_py() + 1
        is_doubtful = pyarrow.compute.or_(batch.column("doubt"), batch.column("failed").is_valid())
        if is_doubtful.true_count:
            batch = self._without_rejects(batch, numpy.flatnonzero(is_doubtful.to_numpy(zero_copy_only=False)).tolist())
        self._valid += batch.num_rows
        for rule in range(len(self._matches)):
            values = batch.column(value_of(rule))
            self._matches[rule] += len(values) - values.null_count
        # As Python's numbers, which have no end.
        self._increments = [
            before + sum(batch.column(increment_of(number)).to_pylist())
            for number, before in enumerate(self._increments)
        ]
        batch = self._without_keyless(batch)
        # As a whole it is almost always smaller than what is too large for one record.
        if batch.nbytes > self._surely_fits:
            batch = self._without_large(batch)
        self._batches.append(batch)

    @property
    def emitted(self) -> int:
        """How many records the rules emit, those that were rejected too."""
        return sum(self._matches)

    def reach(self, offset: int) -> None:
        """There is nothing more before this offset."""
        self.next_offset = max(self.next_offset, offset)

    def outgoing(self) -> Iterator[RecordFields]:
        """What is to be written: rejects, and then what rules emit, in the order of the source."""
        yield from self._rejects
        for batch in self._batches:
            yield from self._emitted(batch)

    def after(self, progress: PartitionProgress) -> PartitionProgress:
        """The progress once this portion is written, too."""
        counters = {table: {rule: dict(sums) for rule, sums in of.items()} for table, of in progress.counters.items()}
        for counter in self._outlet.counters:
            name, _ = self._outlet.rules[counter.rule]
            sums = counters.setdefault(counter.table, {}).setdefault(name, {})
            sums[counter.name] = sums.get(counter.name, 0) + self._growth(counter)
        return replace(
            progress,
            next_offset=self.next_offset,
            valid=progress.valid + self._valid,
            rejected=progress.rejected + self._rejected,
            counters=counters,
        )

    def _growth(self, counter: Counter) -> int:
        if counter.increment is not None:
            return self._increments[counter.increment]
        matches = self._matches[counter.rule]
        return counter.when_matched * matches + counter.when_missed * (self._valid - matches)

    def _emitted(self, batch: pyarrow.RecordBatch) -> Iterator[RecordFields]:
        """Made while they are written, and by columns: an object for each record would be most of what a task costs."""
        offsets = batch.column("offset").to_numpy()
        sources = [(SOURCE_HEADER, self._place(offset)) for offset in offsets.tolist()]
        rows: list[Any] = []
        values: list[bytes] = []
        keys: list[bytes | None] = []
        origins: list[tuple[str, Header]] = []
        for number, (name, topic) in enumerate(self._outlet.rules):
            emitted = batch.column(value_of(number))
            found = numpy.flatnonzero(emitted.is_valid())
            rows.append(found)
            values += emitted.drop_null().to_pylist()
            keys += _keys(batch, number, found)
            origins += repeat((topic, (RULE_HEADER, name.encode())), len(found))
        of_all = numpy.concatenate(rows)
        # By record, then by rule: of two that have a key in common, the later one has the last word.
        order = of_all.argsort(kind="stable")
        for row, at in zip(of_all[order].tolist(), order.tolist(), strict=True):
            topic, rule = origins[at]
            yield topic, values[at], keys[at], [sources[row], rule], -1

    def _without_large(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Rejects what its topic would not take, and gives the others."""
        offsets = batch.column("offset")
        for number, (name, topic) in enumerate(self._outlet.rules):
            values, limit = batch.column(value_of(number)).to_pylist(), self._outlet.limits[topic]
            for row, value in enumerate(values):
                if value is None:
                    continue
                (key,) = _keys(batch, number, [row])
                headers = self._origin(offsets[row].as_py(), name)
                size = _size(key, value, headers)
                if size > limit:
                    reason = f"the record for {topic} has {size} bytes, and it takes {limit}"
                    self._reject(key, value, headers, reason)
                    values[row] = None
            batch = _with_values(batch, number, values)
        return batch

    def _without_keyless(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Rejects what has no key and goes to a topic that takes no such record, and gives the others."""
        for number, (name, topic) in enumerate(self._outlet.rules):
            if topic not in self._outlet.keyed:
                continue
            values = batch.column(value_of(number)).to_pylist()
            keys = _keys(batch, number, range(len(values)))
            keyless = [row for row, value in enumerate(values) if value is not None and keys[row] is None]
            for row in keyless:
                headers = self._origin(batch.column("offset")[row].as_py(), name)
                self._reject(None, values[row], headers, f"the record for {topic} has no key, and it is compacted")
                values[row] = None
            if keyless:
                batch = _with_values(batch, number, values)
        return batch

    def _reject(self, key: bytes | None, value: bytes | None, headers: Headers, reason: str) -> None:
        """With as much of the value and the key as the topic takes; all of it is in the source."""
        topic, told = self._outlet.rejects, [*headers, (REASON_HEADER, _shortened(reason))]
        room = self._outlet.limits[topic] - _size(None, None, told)
        kept_key = None if key is None else key[:room]
        kept_value = None if value is None else value[: room - len(kept_key or b"")]
        self._rejects.append(OutgoingRecord(topic, kept_value, kept_key, told))

    def _without_rejects(self, batch: pyarrow.RecordBatch, doubtful: list[int]) -> pyarrow.RecordBatch:
        """Rejects those of the doubtful rows that turn out to be wrong, and gives the others."""
        is_valid = numpy.ones(batch.num_rows, dtype=bool)
        for row in doubtful:
            key, value = (batch.column(name)[row].as_py() for name in ("key", "value"))
            unread = [self._outlet.fields[number].name for number in _numbers(batch, "unread", row)]
            failed = [self._outlet.parts[number] for number in _numbers(batch, "failed", row)]
            failed += [] if self._blame is None else [self._blame]
            is_readable = batch.column("readable")[row].as_py()
            fault = fault_of(value, self._outlet.fields, unread=unread, failed=failed, is_readable=is_readable)
            if fault is not None:
                is_valid[row] = False
                place = self._place(batch.column("offset")[row].as_py())
                self._reject(key, value, [(SOURCE_HEADER, place)], fault)
                self._rejected += 1
        return batch.filter(pyarrow.array(is_valid))

    def _origin(self, offset: int, rule: str) -> Headers:
        return [(SOURCE_HEADER, self._place(offset)), (RULE_HEADER, rule.encode())]

    def _place(self, offset: int) -> bytes:
        return b"%b%d" % (self._places, offset)


def _shortened(reason: str) -> bytes:
    """As much of it as a header has, in whole characters."""
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()


def _numbers(batch: pyarrow.RecordBatch, column: str, row: int) -> list[int]:
    """Those that a column lists, like `0,3`."""
    listed: str | None = batch.column(column)[row].as_py()
    return [int(number) for number in listed.split(",")] if listed else []


def _with_values(batch: pyarrow.RecordBatch, rule: int, values: list[bytes | None]) -> pyarrow.RecordBatch:
    """The batch with other values for a rule."""
    at = batch.schema.get_field_index(value_of(rule))
    return batch.set_column(at, value_of(rule), pyarrow.array(values, pyarrow.binary()))


def _keys(batch: pyarrow.RecordBatch, rule: int, rows: Any) -> list[bytes | None]:
    at = batch.schema.get_field_index(key_of(rule))
    if at < 0:
        return [None] * len(rows)
    keys: list[bytes | None] = batch.column(at).take(pyarrow.array(rows)).to_pylist()
    return keys


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    told = sum(len(name) + len(text) + 10 for name, text in headers)
    return len(key or b"") + len(value or b"") + told + FRAME_BYTES
