"""How a pipeline stands, as its status tells it."""

from __future__ import annotations

from dataclasses import replace

from lastword.core.position import Position
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.running.pipeline_status import PipelineStatus
from lastword.pipeline.running.progress import PartitionProgress


def rule(name: str, to: str) -> Rule:
    return Rule(name=name, when="true", to=to, value={"team": "rule"})


def test_the_status_tells_of_the_most_tasks_that_ever_shared_the_work_whatever_the_last_batch_was() -> None:
    plan = Pipeline(
        app="teams",
        source=Source(topic="new_users", schema="id STRING"),
        rules=(rule("team-1", "actions"),),
        tables=(),
    )
    standing = PipelineStatus(plan)
    assert standing.row(None)["most_tasks"] == 0
    of_before = PartitionProgress(next_offset=1, source_id="a", generation=1, owner="me", most_tasks=5)
    standing.committed(
        {0: of_before, 1: replace(of_before, most_tasks=1)}, tasks=1, records=1, newest_ms=None, seconds=0.1
    )
    row = standing.row(None)
    assert (row["most_tasks"], row["batch"]["tasks"]) == (5, 1)


def test_the_status_names_each_topic_that_the_rules_write_to_once_and_the_tables_kept() -> None:
    plan = Pipeline(
        app="teams",
        source=Source(topic="new_users", schema="id STRING"),
        rules=(rule("team-1", "actions"), rule("team-2", "alerts"), rule("team-3", "actions")),
        tables=(KeptTable(topic="team_stats", key="team", counters={}),),
    )
    row = PipelineStatus(plan).row(Position({0: 5}))
    assert (row["source"], row["emits"], [*row["tables"]]) == ("new_users", ["actions", "alerts"], ["team_stats"])
