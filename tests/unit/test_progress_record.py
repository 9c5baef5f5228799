from __future__ import annotations

import json

import pytest

from lastword.pipeline.running.progress import PartitionProgress

PROGRESS = PartitionProgress(
    next_offset=7,
    source_id="abc",
    generation=3,
    owner="process 1 on host",
    valid=6,
    rejected=1,
    counters={"stats": {"one": {"seen": 2**70}}},
)


def test_a_progress_is_read_as_it_was_written() -> None:
    assert PartitionProgress.from_json(PROGRESS.to_json()) == PROGRESS


def test_one_that_does_not_say_how_many_tasks_there_were_is_read_all_the_same() -> None:
    fields = json.loads(PROGRESS.to_json())
    del fields["most_tasks"]
    assert PartitionProgress.from_json(json.dumps(fields).encode()) == PROGRESS


def test_one_of_another_format_is_refused() -> None:
    other = json.dumps({**json.loads(PROGRESS.to_json()), "format": 2}).encode()
    with pytest.raises(ValueError, match="it has format 2, and this version knows 1"):
        PartitionProgress.from_json(other)
