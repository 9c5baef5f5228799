"""The fraud scenario as `up` runs it: its parts, when they are ready, and what to try."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from lastword.core.clock import now_ms
from lastword.core.errors import ServerUnreachable
from lastword.core.http_client import Address, Server, ServerRefused
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.teams.parts import PIPELINE, SERVE, USERS, Choices, parts, pipeline
from lastword.up.control import Upkeep
from lastword.up.desired_state import Part
from lastword.up.http_tokens import HttpTokens

_LAST_READ_S = 15.0
_LOOK_EVERY_S = 0.2


class _StatusRow(msgspec.Struct):
    value: msgspec.Raw


class TeamsScenario:
    """Closed by its maker. `profiles` is the topic that is served as the table `users`."""

    def __init__(self, options: Choices, tokens: HttpTokens, *, profiles: str) -> None:
        self._options = options
        self._tokens = tokens
        self._profiles = profiles
        self._plan = pipeline()
        self._server = Server(Address.parse(options.url), token=tokens.reading, timeout_s=5)
        self._generation = 0

    def close(self) -> None:
        self._server.close()

    @property
    def choices(self) -> Mapping[str, Any]:
        return asdict(self._options)

    def parts(self, cluster: Sequence[str]) -> tuple[Part, ...]:
        return parts(cluster, self._options, profiles=self._profiles, token_file=self._tokens.file)

    def part_not_ready(self, upkeep: Upkeep) -> str | None:
        """Ready is a server that answers so, and a pipeline that has written its status since its start."""
        if upkeep.part(SERVE).pid is None or not self._server_is_ready():
            return SERVE
        since_ms = upkeep.part(PIPELINE).since_ms
        status = self._pipeline_status()
        # The table still has the status that an earlier pipeline wrote.
        if since_ms is None or status is None or status.started < since_ms or status.generation == 0:
            return PIPELINE
        self._generation = status.generation
        return None

    def after_end_of(self, part: str, upkeep: Upkeep) -> None:
        """After the last user, waits until the pipeline has read all of them: users may expire before its next run."""
        if part != USERS or upkeep.part(PIPELINE).pid is None:
            return
        upkeep.on_progress("the pipeline reads the last users")
        ended_ms, give_up_at = now_ms(), time.monotonic() + _LAST_READ_S
        while time.monotonic() < give_up_at:
            status = self._pipeline_status()
            if status is None or (status.at > ended_ms and status.lag == 0):
                return
            time.sleep(_LOOK_EVERY_S)

    def summary(self) -> str:
        return f"pipeline {self._plan.app} in generation {self._generation}, HTTP at {self._options.url}"

    def suggestions(self) -> dict[str, str]:
        url, curl = self._options.url, self._tokens.curl
        return {
            f"{url}/": "the console: all of it in a browser",
            curl(f"{url}/users/user-1"): "a profile over HTTP",
            curl(f"{url}/tables/team_stats/rows"): "what each team has seen and flagged",
            "lastword board": "who leads, live",
            "lastword get team_stats team-1": "the numbers of one team, from Kafka",
            "lastword sql 'SELECT team, flagged FROM team_stats'": "Spark SQL over it",
            "lastword status": "what runs, since when, and where its log is",
            "lastword down": "end it all; the data is kept",
        }

    def _server_is_ready(self) -> bool:
        try:
            self._server.get("/ready", {}, dict)
        except (ServerUnreachable, ServerRefused):
            return False
        return True

    def _pipeline_status(self) -> PipelineStatus | None:
        """None while the server or the pipeline does not say it."""
        try:
            row = self._server.get(f"/tables/{self._plan.status}/rows/{self._plan.app}", {}, _StatusRow)
        except (ServerUnreachable, ServerRefused):
            return None
        # A row that is no status is replaced by the pipeline as soon as it runs.
        return PipelineStatus.from_json(bytes(row.value))
