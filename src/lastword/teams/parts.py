"""The parts of the fraud scenario: generated users, the pipeline of the fifteen teams, and HTTP over its tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lastword.core.errors import BadInput
from lastword.demo.people import TABLE
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.plan.plan_file import read_plan
from lastword.up.desired_state import DesiredState, Part

# In a checkout it is a link to pipelines/teams.toml, so that a change there is a change here.
FILE = Path(__file__).with_name("teams.toml")
USERS, PIPELINE, SERVE = "users", "pipeline", "serve"
_LASTWORD = (sys.executable, "-m", "lastword")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What can be chosen for a run."""

    http_port: int = 8090
    rate: int = 50

    @classmethod
    def of(cls, wanted: DesiredState, given: Mapping[str, Any], *, is_running: bool) -> Choices:
        """Those that are given; else those of what runs, and the port of what ran last."""
        kept = dict(wanted.choices) if is_running else {k: v for k, v in wanted.choices.items() if k == "http_port"}
        return cls(**{**kept, **{name: value for name, value in given.items() if value is not None}})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"


def pipeline() -> Pipeline:
    """What the file says; BadInput when something is wrong with it."""
    plan = read_plan(FILE)
    if plan.mistakes:
        raise BadInput(plan.mistakes[0].told(str(FILE.resolve())))
    return plan.pipeline


def parts(cluster: Sequence[str], choices: Choices, *, token_file: Path | None = None) -> tuple[Part, ...]:
    """In the order of their start: ended the other way round, nothing comes in any more when the pipeline ends.

    `cluster` has the words that name it.
    """
    plan = pipeline()
    served = {"users": TABLE, **{table.topic: table.topic for table in plan.tables}, plan.status: plan.status}
    tables = [word for name, topic in served.items() for word in ("--table", f"{name}={topic}")]
    locked = [] if token_file is None else ["--token-file", str(token_file)]
    words = {
        SERVE: ["serve", *tables, "--board", "--port", str(choices.http_port), *locked],
        PIPELINE: ["run", str(FILE), "--set", "spark.driver.memory=1g"],
        USERS: ["demo", "users", "--rate", str(choices.rate), "--topic", plan.source.topic],
    }
    return tuple(Part(name=name, command=(*_LASTWORD, *each, *cluster)) for name, each in words.items())


def wanted(cluster: LocalCluster, choices: Choices, *, token_file: Path | None, is_owned: bool) -> DesiredState:
    config = [] if cluster.client_file is None else ["--config", str(cluster.client_file)]
    named = ["--bootstrap-servers", cluster.connection.bootstrap_servers, *config]
    return DesiredState(
        is_owned=is_owned,
        parts=parts(named, choices, token_file=token_file),
        cluster=str(cluster.folder),
        start_cluster=(*_LASTWORD, "broker", "start"),
        choices=asdict(choices),
    )
