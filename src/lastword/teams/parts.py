"""The parts of the fraud scenario: generated users, the pipeline of the fifteen teams, and HTTP over its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastword.core.errors import BadInput
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.plan.plan_file import read_plan
from lastword.up.desired_state import LASTWORD, DesiredState, Part

# In a checkout it is a link to pipelines/teams.toml, so that a change there is a change here.
FILE = Path(__file__).with_name("teams.toml")
USERS, PIPELINE, SERVE = "users", "pipeline", "serve"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of a run."""

    http_port: int = 8090
    rate: int = 50

    @classmethod
    def of(cls, last: DesiredState, given: Mapping[str, Any], *, is_running: bool) -> Choices:
        """The given options. Others come from the run that continues; without one, only the port of the last run."""
        before = dict(last.choices) if is_running else {k: v for k, v in last.choices.items() if k == "http_port"}
        return cls(**{**before, **{name: value for name, value in given.items() if value is not None}})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"


def pipeline() -> Pipeline:
    """The pipeline of the file; BadInput for the first mistake in it."""
    plan = read_plan(FILE)
    if plan.mistakes:
        raise BadInput(plan.mistakes[0].as_line(str(FILE.resolve())))
    return plan.pipeline


def parts(
    cluster: Sequence[str], choices: Choices, *, profiles: str, token_file: Path | None = None
) -> tuple[Part, ...]:
    """The parts in the order of their start: stopped in reverse order, no user comes any more when the pipeline stops.

    `cluster` has the options that name it; `profiles` is the topic that is served as the table `users`.
    """
    plan = pipeline()
    served = {"users": profiles, **{table.topic: table.topic for table in plan.tables}, plan.status: plan.status}
    tables = [word for name, topic in served.items() for word in ("--table", f"{name}={topic}")]
    locked = [] if token_file is None else ["--token-file", str(token_file)]
    commands = {
        SERVE: ["serve", *tables, "--board", "--port", str(choices.http_port), *locked],
        PIPELINE: ["run", str(FILE), "--set", "spark.driver.memory=1g"],
        USERS: ["demo", "users", "--rate", str(choices.rate), "--topic", plan.source.topic],
    }
    return tuple(Part(name=name, command=(*LASTWORD, *words, *cluster)) for name, words in commands.items())
