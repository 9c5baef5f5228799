"""How a pipeline stands, as its status tells it."""

from __future__ import annotations

from lastword.core.position import Position
from lastword.pipeline.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.standing import Standing


def rule(name: str, to: str) -> Rule:
    return Rule(name=name, when="true", to=to, value={"team": "rule"})


def test_the_status_names_each_topic_that_the_rules_write_to_once_and_the_tables_kept() -> None:
    plan = Pipeline(
        app="teams",
        source=Source(topic="new_users", schema="id STRING"),
        rules=(rule("team-1", "actions"), rule("team-2", "alerts"), rule("team-3", "actions")),
        tables=(KeptTable(topic="team_stats", key="team", counters={}),),
    )
    row = Standing(plan).row(Position({0: 5}))
    assert (row["source"], row["emits"], [*row["tables"]]) == ("new_users", ["actions", "alerts"], ["team_stats"])
