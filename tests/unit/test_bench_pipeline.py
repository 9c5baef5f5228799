"""The pieces of the pipeline's benchmark: the same rules for all, results that are checked, and times that are told."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.alternatives.rules_loop import TEAMS, judge_all, matches_of
from benchmarks.measuring.figures import Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run
from benchmarks.pipeline.latency import source_of, to_actions, to_counters
from benchmarks.pipeline.recovery import Recovery
from benchmarks.pipeline.report import KAFKA_PYTHON, OURS, SINK, PipelineMeasurements, pipeline_result
from benchmarks.pipeline.topics import Outcome, PipelineTopics, refuse_other
from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.kafka.client.connection import Connection
from lastword.pipeline.plan.plan_file import read_plan
from lastword.teams.users.generated_users import users
from support.fifteen_rules import ACTIONS, expected_matches

TOPICS = PipelineTopics(
    connection=Connection(bootstrap_servers="127.0.0.1:1"), app="mine", users="people", actions="deeds", stats="sums"
)


def generated(count: int) -> list[dict[str, object]]:
    return [{name: getattr(user, name) for name in user.__struct_fields__} for user in islice(users(seed=0), count)]


def test_the_loops_have_the_rules_of_the_fifteen_teams() -> None:
    people = generated(2000)
    assert [set(matches_of(user)) for user in people] == [expected_matches(user) for user in people]
    assert {team: (kind, reason) for team, kind, reason, _ in TEAMS} == ACTIONS
    # Each of them is tried.
    assert set().union(*map(matches_of, people)) == set(ACTIONS)


def test_a_loop_sends_an_action_for_each_match_and_a_row_for_each_team() -> None:
    people = generated(50)
    sent: list[tuple[str, bytes | None, bytes]] = []
    judge_all([json.dumps(user).encode() for user in people], lambda *words: sent.append(words), "actions", "stats")
    actions = [json.loads(value) for topic, key, value in sent if topic == "actions" and key is None]
    assert [(each["customer"], each["team"]) for each in actions] == [
        (user["email"], team) for user in people for team in matches_of(user)
    ]
    rows = {key: json.loads(value) for topic, key, value in sent if topic == "stats"}
    flagged = sum("team-9" in matches_of(user) for user in people)
    assert rows[b"team-9"] == {"team": "team-9", "processed": 50, "flagged": flagged}
    assert len(rows) == 15


def test_the_file_of_a_run_has_its_names_and_else_what_teams_toml_says(tmp_path: Path) -> None:
    made, original = read_plan(str(TOPICS.file(tmp_path))), read_plan("pipelines/teams.toml").pipeline
    assert not made.mistakes
    assert (made.pipeline.app, made.pipeline.source.topic, made.pipeline.changelog) == (
        "mine",
        "people",
        TOPICS.changelog,
    )
    assert {rule.to for rule in made.pipeline.rules} == {"deeds"}
    assert [table.topic for table in made.pipeline.tables] == ["sums"]
    assert [(r.name, r.when, r.value) for r in made.pipeline.rules] == [
        (r.name, r.when, r.value) for r in original.rules
    ]


@pytest.mark.parametrize("what", ["actions", "flagged", "processed"])
def test_a_run_with_other_results_than_the_recount_is_refused_by_name(what: str) -> None:
    right = {"actions": {"a": 3, "b": 1}, "flagged": {"a": 3, "b": 1}, "processed": {"a": 9, "b": 9}}
    expected = Outcome(**right)
    refuse_other("somebody", Outcome(**right), expected)
    for wrong in ({**right[what], "b": 2}, {"a": right[what]["a"]}):
        with pytest.raises(LastwordError, match=rf"somebody: {what} of b is .*, the recount gives {right[what]['b']}"):
            refuse_other("somebody", Outcome(**{**right, what: wrong}), expected)


def test_the_time_to_an_action_is_from_the_record_that_its_header_names() -> None:
    action = Record(None, b"{}", 0, 7, 0, (("source", b"some/where/2/41"), ("rule", b"team-1")))
    assert source_of(action) == (2, 41)
    made = {(2, 41): 1000, (2, 42): 1010}
    # A user who flags nobody has no action, and one who was made before does not count.
    assert to_actions(made, {(2, 41): 1180.5, (2, 40): 1100.0}) == [180.5]


def test_the_nth_user_waits_until_n_are_counted() -> None:
    assert to_counters([30, 10, 20, 40], [(1, 100.0), (3, 200.0)]) == [90, 180, 170]


def result(p50_ms: float, rates: dict[str, float]) -> Result:
    def done(**answer: float) -> Run:
        return Run(began=0, seconds=30, output=json.dumps(answer), peak_mb=None, cpu_s=9)

    latency = {"action, p50": p50_ms, "action, p99": 900, "stats, p50": 600, "stats, p99": 1000}
    measured = PipelineMeasurements(
        runs={who: [done(seconds=1_000 / rate)] for who, rate in rates.items()},
        latency=[done(**latency)],
        batches_ms=[100, 300, 120],
        recoveries=[Recovery(to_takeover=4, to_commit=6)],
    )
    plan = Plan(records=1_000, rounds=1, home=Path(), jars=Path(), report=print)
    return pipeline_result(plan, measured, [], 5)


def test_the_targets_are_three_times_kafka_python_most_of_sparks_sink_and_half_a_second() -> None:
    rates = {OURS: 60.5, KAFKA_PYTHON: 20.0, SINK: 100.0}
    assert result(500, rates).is_met
    assert not result(501, rates).is_met
    assert not result(500, {**rates, KAFKA_PYTHON: 20.2}).is_met
    assert not result(500, {**rates, SINK: 101.0}).is_met


def test_the_time_of_a_batch_is_a_median() -> None:
    told = {figure.what: figure.median for figure in result(1, {OURS: 1.0}).figures}
    assert told["100 users/s, a batch"] == 120
    assert told["kill -9 to the first new commit"] == 6
