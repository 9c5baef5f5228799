"""The parts of the fraud scenario: what is run, with which choices."""

from __future__ import annotations

from pathlib import Path

from lastword.teams.parts import FILE, Choices, parts
from lastword.up.desired_state import NOTHING_WANTED, DesiredState

ROOT = Path(__file__).parents[2]


def test_the_pipeline_that_up_runs_is_the_file_of_the_repository() -> None:
    assert FILE.samefile(ROOT / "pipelines" / "teams.toml")


def test_each_part_is_a_command_on_the_cluster_and_the_generated_users_are_ended_first() -> None:
    cluster = ["--bootstrap-servers", "127.0.0.1:9"]
    made = {
        part.name: list(part.command[3:]) for part in parts(cluster, Choices(http_port=80), profiles="user-profiles")
    }
    assert list(made) == ["serve", "pipeline", "users"]
    tables = [
        "--table",
        "users=user-profiles",
        "--table",
        "team_stats=team_stats",
        "--table",
        "teams-status=teams-status",
    ]
    assert made["serve"] == ["serve", *tables, "--board", "--port", "80", *cluster]
    run = ["run", str(FILE), "--set", "spark.driver.memory=1g"]
    assert made["pipeline"] == [*run, *cluster]
    assert made["users"] == ["demo", "users", "--rate", "50", "--topic", "new_users", *cluster]


def test_choices_are_those_given_and_else_those_of_what_runs_or_the_port_of_what_ran() -> None:
    nothing = {"http_port": None, "rate": None}
    known = DesiredState(parts=(), start_cluster=(), choices={"http_port": 81, "rate": 7})
    assert Choices.of(NOTHING_WANTED, nothing, is_running=False) == Choices()
    assert Choices.of(known, nothing, is_running=True) == Choices(http_port=81, rate=7)
    assert Choices.of(known, nothing, is_running=False) == Choices(http_port=81)
    assert Choices.of(known, {**nothing, "rate": 9}, is_running=True) == Choices(http_port=81, rate=9)
