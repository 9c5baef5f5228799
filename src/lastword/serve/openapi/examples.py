"""Examples of answers, each an object of the Struct that declares it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from lastword.core.shapes.cluster import BrokerAddress, ClusterAnswer, ClusterSample, TopicSummary
from lastword.core.shapes.rows import CountAnswer, WriteAnswer, WritesAnswer
from lastword.core.shapes.tables import HealthAnswer, ReadyAnswer, TablesAnswer, TableStatus
from lastword.core.shapes.topics import CompactionBegun, TopicAnswer, TopicSample, TopicSetting
from lastword.serve.openapi.schemas import Described, Node

_AT = 1_767_225_600_000
_TOPIC_ID = "x8uVfLZNQmG1nRbYpKs0Tw"
_VALUES: dict[str, Any] = {"string": "Alice", "json": {"name": "Alice"}, "bytes": "QWxpY2U=", "int": 42}
KEYS: dict[str, Any] = {"string": "user-1", "json": {"id": 1}, "bytes": "dXNlci0x", "int": 1}

_TABLE = TableStatus(
    name="users",
    topic="user-profiles",
    topic_id=_TOPIC_ID,
    key="string",
    value="json",
    partitions=3,
    rows=10,
    position="0:18,1:5,2:9",
    log_start="0:0,1:0,2:0",
    topic_log_start="0:0,1:0,2:0",
    lag=0,
    state="ready",
    why=None,
    deletes="certain",
)
_CLUSTER = ClusterAnswer(
    at=_AT,
    state="connected",
    why=None,
    cluster_id="5L6g3nShT-eMCtK--X86sw",
    is_local=True,
    brokers=[BrokerAddress(1, "127.0.0.1:9092")],
    controller=1,
    topics=[
        TopicSummary(
            name="user-profiles",
            topic_id=_TOPIC_ID,
            cleanup_policy="compact",
            partitions=3,
            replication=1,
            start_to_end=12_000,
            bytes=123_456,
            records_per_s=12.5,
            under_replicated=0,
            leaderless=0,
            tables=["users"],
        )
    ],
    pipelines=[],
    history=[ClusterSample(_AT, 123_456, 0)],
)
_TOPIC = TopicAnswer(
    name="user-profiles",
    topic_id=_TOPIC_ID,
    cleanup_policy="compact",
    tables=["users"],
    settings={"segment.ms": TopicSetting("10000", "topic")},
    bytes=123_456,
    partitions=[],
    census=None,
    census_why="being counted",
    rows={"users": 3600},
    at=_AT,
    state="connected",
    why=None,
    records_per_s=12.5,
    compaction=None,
    history=[TopicSample(_AT, 123_456, 12_000, 0)],
)
_EXAMPLES: tuple[Struct, ...] = (
    HealthAnswer(),
    ReadyAnswer(),
    _TABLE,
    TablesAnswer([_TABLE]),
    CountAnswer(10),
    WriteAnswer(2, 17, "2:18"),
    WritesAnswer(1, "2:18"),
    _CLUSTER,
    _TOPIC,
    CompactionBegun("running", _AT),
)


def example_of(shape: type[Struct], guests: list[str], guest_examples: list[Struct]) -> Node:
    """An answer of the shape; that about the cluster has a field for each guest."""
    example: Node = msgspec.to_builtins(next(each for each in (*_EXAMPLES, *guest_examples) if type(each) is shape))
    return example | dict.fromkeys(guests, False) if shape is ClusterAnswer else example


def example_value(table: Described) -> Any:
    return _VALUES[table.value_codec.name]


def example_row(table: Described) -> Node:
    place = {"partition": 2, "offset": 17, "timestamp": _AT}
    return {"key": KEYS[table.key_codec.name], "value": example_value(table), **place}
