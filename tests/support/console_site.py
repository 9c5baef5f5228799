"""A cluster in a separate home, the tables of the console's tests, and HTTP over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lastword.api.table import Table
from lastword.demo.demo_topics import fill_profiles
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.teams.board.board_topics import STATUS
from lastword.teams.users.fraud_topics import make_fraud_topics
from support.boards import act, stats, write, write_status
from support.command_line import JARS, CommandLine
from support.serve_instance import Instance

# Name in addresses -> topic and codec. The values of `plain` are text, those of `packed` are bytes.
TABLES = {
    "users": "user-profiles",
    "team_stats": "team_stats",
    STATUS: STATUS,
    "odd": "odd",
    "plain": "plain,value=string",
    "packed": "packed,value=bytes",
    "busy": "busy",
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A local cluster and one server; a test may start more servers."""

    line: CommandLine
    cluster: LocalCluster
    instance: Instance

    @property
    def url(self) -> str:
        return self.instance.url

    @property
    def connection(self) -> Connection:
        return self.cluster.connection

    def table(self, name: str) -> Table:
        """The table, to write to it as another program does."""
        topic, _, value = TABLES[name].partition(",value=")
        return Table(self.connection, topic, value=value or "json")

    def another(self, folder: Path, *options: str, tables: tuple[str, ...] = ("users",)) -> Instance:
        """Another server, for tests that kill or lock it."""
        return _instance(self.line, folder, tables, *options)


@contextmanager
def site_in(folder: Path) -> Iterator[Site]:
    line = CommandLine(home=folder / "home")
    with LocalCluster.at(line.home, JARS, owned=True) as cluster:
        cluster.start(port=0)
        _fill(cluster.connection)
        with _instance(line, folder / "replicas", tuple(TABLES), "--board") as instance:
            yield Site(line=line, cluster=cluster, instance=instance)


def _instance(line: CommandLine, folder: Path, tables: tuple[str, ...], *options: str) -> Instance:
    return Instance(line, folder, *(f"{name}={TABLES[name]}" for name in tables), options=options)


def _fill(connection: Connection) -> None:
    fill_profiles(connection)
    make_fraud_topics(connection)
    for topic in ("odd", "plain", "packed", "busy"):
        create_topic(connection, topic, partitions=3)
    write_status(connection, ["team-1", "team-2", "team-3"], tasks=2)
    act(connection, "team-1", "team-1", "team-2", "team-3")
    write(connection, "team_stats", *((f"team-{n}", stats(f"team-{n}", 40 + n, n)) for n in (1, 2, 3)))
    write(connection, "actions", (None, b"no action"))
