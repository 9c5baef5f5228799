"""Where a streaming query's sources have come to, as positions of topics, and in which order they are committed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from pyspark.sql.streaming.listener import QueryProgressEvent

from lastword.core.position import Position
from lastword.spark.writing.group_progress import GroupProgress, end_positions


def test_the_end_offsets_of_a_kafka_source_are_positions() -> None:
    assert end_positions(['{"users":{"0":5,"1":7},"teams":{"0":1}}']) == {
        "users": Position({0: 5, 1: 7}),
        "teams": Position({0: 1}),
    }


def test_of_two_sources_with_one_topic_the_earlier_counts() -> None:
    assert end_positions(['{"users":{"0":5,"1":7}}', '{"users":{"0":6,"1":3}}']) == {"users": Position({0: 5, 1: 3})}


def test_sources_without_partitions_are_passed_over() -> None:
    assert end_positions(["12", '{"logOffset":0}', None, "", '"text"', '{"users":{"0":5}}']) == {
        "users": Position({0: 5})
    }


class SlowGroup:
    """Keeps what was committed. While its first commit is under way, the listener's thread brings the next event."""

    def __init__(self, next_event: QueryProgressEvent) -> None:
        self.committed: list[int] = []
        self.progress: GroupProgress | None = None
        self._listener = threading.Thread(target=lambda: self._bring(next_event))

    def commit(self, positions: Mapping[str, Position]) -> None:
        offset = positions["users"][0]
        if offset == 1:
            self._listener.start()
            self._listener.join(timeout=0.3)
        self.committed.append(offset)

    def all_brought(self) -> None:
        self._listener.join(timeout=120)

    def _bring(self, event: QueryProgressEvent) -> None:
        assert self.progress is not None
        self.progress.onQueryProgress(event)


def batch_end(offset: int) -> QueryProgressEvent:
    told: Any = SimpleNamespace(runId="ours", sources=[SimpleNamespace(endOffset=f'{{"users":{{"0":{offset}}}}}')])
    return QueryProgressEvent(told)


def test_an_event_from_before_the_query_was_known_is_committed_before_a_newer_one() -> None:
    group: Any = SlowGroup(next_event=batch_end(2))
    spark: Any = None
    group.progress = progress = GroupProgress(spark, group)
    progress.onQueryProgress(batch_end(1))
    progress.follow("ours")
    group.all_brought()
    assert group.committed == [1, 2]
