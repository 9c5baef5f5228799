"""The status row of a pipeline: what is in it, and which rows are read."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from lastword.core.position import Position
from lastword.core.shapes.pipeline_status import BatchStatus, PipelineEvent, PipelineStatus
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.running.pipeline_status import RunStatus
from lastword.pipeline.running.progress import PartitionProgress

# As version 0.1.0 writes it to `teams-status`, byte for byte.
ROW = (
    b'{"app": "teams", "at": 1794800002000, "started": 1794800000000, "generation": 3, '
    b'"owner": "process 7 on h\\u00f6st", "source": "new_users", "emits": ["actions"], "position": "0:18,1:5", '
    b'"lag": null, "rate": 50.1, "valid": 22, "rejected": 1, '
    b'"tables": {"team_stats": {"team-1": {"processed": 22, "flagged": 1180591620717411303424}}}, "most_tasks": 3, '
    b'"batch": {"tasks": 1, "records": 100, "seconds": 0.2, "latency_ms": null}, '
    b'"events": [{"at": 1794800000500, "what": "started"}]}'
)
STATUS = PipelineStatus(
    app="teams",
    at=1_794_800_002_000,
    started=1_794_800_000_000,
    generation=3,
    owner="process 7 on höst",
    source="new_users",
    emits=["actions"],
    position="0:18,1:5",
    lag=None,
    rate=50.1,
    valid=22,
    rejected=1,
    tables={"team_stats": {"team-1": {"processed": 22, "flagged": 2**70}}},
    most_tasks=3,
    batch=BatchStatus(tasks=1, records=100, seconds=0.2, latency_ms=None),
    events=[PipelineEvent(at=1_794_800_000_500, what="started")],
)


def test_a_row_is_written_and_read_as_before() -> None:
    assert STATUS.to_json() == ROW
    assert PipelineStatus.from_json(ROW) == STATUS


def test_rows_of_older_versions_and_fields_of_newer_ones_are_read() -> None:
    fields = json.loads(ROW)
    del fields["emits"], fields["most_tasks"]
    older = PipelineStatus.from_json(json.dumps(fields).encode())
    assert older is not None
    assert (older.emits, older.most_tasks) == (None, 0)
    newer = {**json.loads(ROW), "news": [1], "batch": {**fields["batch"], "news": {}}}
    assert PipelineStatus.from_json(json.dumps(newer).encode()) == STATUS


@pytest.mark.parametrize("value", [None, b"", b"{", b"null", b"[]", b"{}", b"\xff", ROW[:-1], b"[" * 100_000])
def test_what_is_damaged_or_no_status_is_none(value: bytes | None) -> None:
    assert PipelineStatus.from_json(value) is None


@pytest.mark.parametrize("name", sorted(json.loads(ROW).keys() - {"emits", "most_tasks"}))
def test_a_row_without_one_of_its_fields_is_no_status(name: str) -> None:
    fields = json.loads(ROW)
    del fields[name]
    assert PipelineStatus.from_json(json.dumps(fields).encode()) is None


def rule(name: str, to: str) -> Rule:
    return Rule(name=name, when="true", to=to, value={"team": "rule"})


def test_the_status_tells_of_the_most_tasks_that_ever_shared_the_work_whatever_the_last_batch_was() -> None:
    plan = Pipeline(
        app="teams",
        source=Source(topic="new_users", schema="id STRING"),
        rules=(rule("team-1", "actions"),),
        tables=(),
    )
    status = RunStatus(plan)
    assert status.row(None).most_tasks == 0
    of_before = PartitionProgress(next_offset=1, source_id="a", generation=1, owner="me", most_tasks=5)
    status.committed(
        {0: of_before, 1: replace(of_before, most_tasks=1)}, tasks=1, records=1, newest_ms=None, seconds=0.1
    )
    row = status.row(None)
    assert (row.most_tasks, row.batch.tasks) == (5, 1)


def test_the_status_names_each_topic_that_the_rules_write_to_once_and_the_tables_kept() -> None:
    plan = Pipeline(
        app="teams",
        source=Source(topic="new_users", schema="id STRING"),
        rules=(rule("team-1", "actions"), rule("team-2", "alerts"), rule("team-3", "actions")),
        tables=(KeptTable(topic="team_stats", key="team", counters={}),),
    )
    row = RunStatus(plan).row(Position({0: 5}))
    assert (row.source, row.emits, [*row.tables]) == ("new_users", ["actions", "alerts"], ["team_stats"])
