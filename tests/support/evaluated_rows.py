"""Rows evaluated by Spark, of a pipeline with two rules."""

from __future__ import annotations

from typing import Any

import pyarrow

from lastword.pipeline.evaluation.evaluate import Counter
from lastword.pipeline.evaluation.verdicts import SourceField
from lastword.pipeline.running.output_topics import OutputTopics

OUTPUT_TOPICS = OutputTopics(
    source="users",
    fields=(SourceField(name="name", kind="STRING", is_required=True, is_text=True),),
    rejects="app-rejects",
    parts=("rule one, when: a", "rule one, value"),
    rules=(("one", "actions"), ("two", "others")),
    counters=(
        Counter(table="stats", rule=0, name="seen", when_matched=1, when_missed=1),
        Counter(table="stats", rule=0, name="flagged", when_matched=1),
        Counter(table="stats", rule=1, name="seen", when_matched=1, when_missed=1),
        Counter(table="stats", rule=1, name="flagged", when_matched=1),
        Counter(table="sums", rule=0, name="amount", increment=0),
        Counter(table="sums", rule=1, name="amount", increment=1),
    ),
    limits={"actions": 3000, "others": 3000, "app-rejects": 2000},
    keyed=frozenset(),
)
_SCHEMA = pyarrow.schema(
    [
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.int64()),
        ("is_end", pyarrow.bool_()),
        ("doubt", pyarrow.bool_()),
        ("readable", pyarrow.bool_()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("unread", pyarrow.string()),
        ("failed", pyarrow.string()),
        ("increment_0", pyarrow.int64()),
        ("increment_1", pyarrow.int64()),
        ("value_0", pyarrow.binary()),
        ("value_1", pyarrow.binary()),
        ("key_1", pyarrow.binary()),
    ]
)


def valid(offset: int, *emitted: tuple[int, bytes], increments: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    values = {f"value_{rule}": value for rule, value in emitted}
    sums = {f"increment_{number}": amount for number, amount in enumerate(increments)}
    return {"offset": offset, "doubt": False, "readable": True, **sums, **values}


def unreadable(offset: int, value: bytes | None) -> dict[str, Any]:
    return {"offset": offset, "doubt": True, "readable": False, "key": b"k", "value": value, "unread": "0"}


def end(offset: int, partition: int = 1) -> dict[str, Any]:
    """The row that ends a share at this offset."""
    return {"partition": partition, "offset": offset, "is_end": True, "doubt": True, "readable": False}


def batch(*rows: dict[str, Any]) -> pyarrow.RecordBatch:
    """A batch of rows; partition 1 unless a row names another."""
    return pyarrow.RecordBatch.from_pylist(
        [{"partition": 1, "timestamp": 1, "is_end": False, **row} for row in rows], _SCHEMA
    )
