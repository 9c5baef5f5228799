"""What a benchmark is asked to do, and the cluster it measures on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lastword.core.errors import BadInput, LastwordError
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection


class LeftOut(LastwordError):
    """An alternative that this machine can't run: its name, and the reason."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many records and rounds to measure, where files are kept, and who gets the progress."""

    records: int
    rounds: int
    home: Path
    jars: Path
    report: Callable[[str], None]
    # None: a local cluster for this benchmark only, removed at its end.
    bootstrap_servers: str | None = None

    def __post_init__(self) -> None:
        if self.records < 1 or self.rounds < 1:
            raise BadInput("--records and --rounds: from 1 on")

    @property
    def options(self) -> str:
        address = " --bootstrap-servers HOST:PORT" if self.bootstrap_servers else ""
        return f"--records {self.records} --rounds {self.rounds}{address}"

    @contextmanager
    def cluster(self) -> Iterator[Connection]:
        if self.bootstrap_servers:
            yield Connection(bootstrap_servers=self.bootstrap_servers)
            return
        with LocalCluster.fresh(self.jars, "bench") as local:
            self.report("starting a cluster")
            yield Connection(bootstrap_servers=local.start(port=0).bootstrap_servers)
