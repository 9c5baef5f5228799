"""Evaluated records of one source partition, collected until they are worth a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
from msgspec.structs import replace

from lastword.kafka.client.transactions import OutgoingRecord, RecordFields
from lastword.pipeline.evaluation.evaluate import Counter, increment_of, key_of, value_of
from lastword.pipeline.evaluation.verdicts import fault_of
from lastword.pipeline.running.output_topics import FRAME_BYTES, OutputTopics
from lastword.pipeline.running.progress import PartitionProgress

# Headers of what a pipeline writes: the record that it comes from, the rule, and why a record was rejected.
SOURCE_HEADER = "source"
RULE_HEADER = "rule"
REASON_HEADER = "reason"

# Of a reason: a schema may have many fields that are missing.
_REASON_BYTES = 500


Header = tuple[str, bytes]
Headers = list[Header]


class TransactionBuffer:
    """The results of consecutive records of a partition; with a `blame` all of them are rejected."""

    def __init__(self, output_topics: OutputTopics, partition: int, blame: str | None = None) -> None:
        self._output_topics = output_topics
        self._blame = blame
        self._places = f"{output_topics.source}/{partition}/".encode()
        longest = [self._origin(2**63, name) for name, _ in output_topics.rules]
        self._surely_fits = min(
            (output_topics.limits[topic] - _size(None, None, headers))
            for (_, topic), headers in zip(output_topics.rules, longest, strict=True)
        )
        self._matches = [0] * len(output_topics.rules)
        self._increments = [0] * sum(counter.increment is not None for counter in output_topics.counters)
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
        # As Python integers, which never overflow.
        self._increments = [
            before + sum(batch.column(increment_of(number)).to_pylist())
            for number, before in enumerate(self._increments)
        ]
        batch = self._without_keyless(batch)
        # The whole batch is almost always smaller than the limit of one record: then no record has to be checked.
        if batch.nbytes > self._surely_fits:
            batch = self._without_large(batch)
        self._batches.append(batch)

    @property
    def emitted(self) -> int:
        """How many records the rules emit, including those that are then rejected."""
        return sum(self._matches)

    def reach(self, offset: int) -> None:
        """Everything before this offset was read."""
        self.next_offset = max(self.next_offset, offset)

    def outgoing(self) -> Iterator[RecordFields]:
        """The records to write: first rejects, then what the rules emit, in the order of the source."""
        yield from self._rejects
        for batch in self._batches:
            yield from self._emitted(batch)

    def after(self, progress: PartitionProgress) -> PartitionProgress:
        """The progress once this buffer is written too."""
        counters = {table: {rule: dict(sums) for rule, sums in of.items()} for table, of in progress.counters.items()}
        for counter in self._output_topics.counters:
            name, _ = self._output_topics.rules[counter.rule]
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
        """Made lazily, and by columns: an object for each record would be most of the cost of a task."""
        offsets = batch.column("offset").to_numpy()
        sources = [(SOURCE_HEADER, self._place(offset)) for offset in offsets.tolist()]
        rows: list[Any] = []
        values: list[bytes] = []
        keys: list[bytes | None] = []
        origins: list[tuple[str, Header]] = []
        for number, (name, topic) in enumerate(self._output_topics.rules):
            emitted = batch.column(value_of(number))
            matches = numpy.flatnonzero(emitted.is_valid())
            rows.append(matches)
            values += emitted.drop_null().to_pylist()
            keys += _keys(batch, number, matches)
            origins += repeat((topic, (RULE_HEADER, name.encode())), len(matches))
        of_all = numpy.concatenate(rows)
        # By record, then by rule: of two records with one key the later one wins.
        order = of_all.argsort(kind="stable")
        for row, at in zip(of_all[order].tolist(), order.tolist(), strict=True):
            topic, rule = origins[at]
            yield topic, values[at], keys[at], [sources[row], rule], -1

    def _without_large(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Rejects the records that are too large for their topic, and returns the batch without them."""
        offsets = batch.column("offset")
        for number, (name, topic) in enumerate(self._output_topics.rules):
            values, limit = batch.column(value_of(number)).to_pylist(), self._output_topics.limits[topic]
            for row, value in enumerate(values):
                if value is None:
                    continue
                (key,) = _keys(batch, number, [row])
                headers = self._origin(offsets[row].as_py(), name)
                size = _size(key, value, headers)
                if size > limit:
                    reason = f"the record for {topic} has {size} bytes, and the topic takes {limit}"
                    self._reject(key, value, headers, reason)
                    values[row] = None
            batch = _with_values(batch, number, values)
        return batch

    def _without_keyless(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Rejects the records without a key for a compacted topic, and returns the batch without them."""
        for number, (name, topic) in enumerate(self._output_topics.rules):
            if topic not in self._output_topics.keyed:
                continue
            values = batch.column(value_of(number)).to_pylist()
            keys = _keys(batch, number, range(len(values)))
            keyless = [row for row, value in enumerate(values) if value is not None and keys[row] is None]
            for row in keyless:
                headers = self._origin(batch.column("offset")[row].as_py(), name)
                self._reject(
                    None, values[row], headers, f"the record for {topic} has no key, and the topic is compacted"
                )
                values[row] = None
            if keyless:
                batch = _with_values(batch, number, values)
        return batch

    def _reject(self, key: bytes | None, value: bytes | None, headers: Headers, reason: str) -> None:
        """Writes as much of the key and the value as the topic takes; the source has all of it."""
        topic, headers = self._output_topics.rejects, [*headers, (REASON_HEADER, _shortened(reason))]
        room = self._output_topics.limits[topic] - _size(None, None, headers)
        short_key = None if key is None else key[:room]
        short_value = None if value is None else value[: room - len(short_key or b"")]
        self._rejects.append(OutgoingRecord(topic, short_value, short_key, headers))

    def _without_rejects(self, batch: pyarrow.RecordBatch, doubtful: list[int]) -> pyarrow.RecordBatch:
        """Rejects the doubtful rows that are wrong, and returns the batch without them."""
        is_valid = numpy.ones(batch.num_rows, dtype=bool)
        for row in doubtful:
            key, value = (batch.column(name)[row].as_py() for name in ("key", "value"))
            unread = [self._output_topics.fields[number].name for number in _numbers(batch, "unread", row)]
            failed = [self._output_topics.parts[number] for number in _numbers(batch, "failed", row)]
            failed += [] if self._blame is None else [self._blame]
            is_readable = batch.column("readable")[row].as_py()
            fault = fault_of(value, self._output_topics.fields, unread=unread, failed=failed, is_readable=is_readable)
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
    """The reason as a header, cut between two characters."""
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()


def _numbers(batch: pyarrow.RecordBatch, column: str, row: int) -> list[int]:
    """The numbers that a column lists, like `0,3`."""
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
    headers_size = sum(len(name) + len(text) + 10 for name, text in headers)
    return len(key or b"") + len(value or b"") + headers_size + FRAME_BYTES
