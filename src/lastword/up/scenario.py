"""What `up` runs beside the cluster, as another room gives it: commands, readiness, and suggestions to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.up.control import Upkeep
from lastword.up.desired_state import LASTWORD, DesiredState, Part


class Scenario(Protocol):
    """A set of parts. `up` starts and supervises their commands, and knows nothing else about them."""

    @property
    def choices(self) -> Mapping[str, Any]:
        """The options of this run, as JSON: kept with the desired state, for the next command."""

    def parts(self, cluster: Sequence[str]) -> tuple[Part, ...]:
        """The parts in the order of their start; they stop in reverse order. `cluster` has the options that name it."""

    def part_not_ready(self, upkeep: Upkeep) -> str | None:
        """The name of a part that is not ready yet; None when all are."""

    def after_end_of(self, part: str, upkeep: Upkeep) -> None:
        """Called when a part has been stopped, before the next one is."""

    def summary(self) -> str:
        """What is ready, for the last line that `up` prints."""

    def suggestions(self) -> dict[str, str]:
        """Commands to try, each with its meaning."""


def desired_state(cluster: LocalCluster, scenario: Scenario, *, is_owned: bool) -> DesiredState:
    """The parts of the scenario on a local cluster."""
    config = [] if cluster.client_file is None else ["--config", str(cluster.client_file)]
    return DesiredState(
        is_owned=is_owned,
        parts=scenario.parts(["--bootstrap-servers", cluster.connection.bootstrap_servers, *config]),
        cluster=str(cluster.folder),
        start_cluster=(*LASTWORD, "broker", "start"),
        choices=dict(scenario.choices),
    )
