"""A cluster as a Python program sees it: `connect` to a running one, or start a `local` one for a `with` block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lastword.api.table import Table
from lastword.core.errors import AlreadyExists
from lastword.core.home import default_home, default_jars
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic


class Cluster:
    """Tables of one Kafka cluster; the end of the `with` block closes them and stops a cluster of `local`."""

    def __init__(
        self, connection: Connection, local_cluster: LocalCluster | None = None, *, must_answer: bool = True
    ) -> None:
        self._connection = connection
        self._local = local_cluster
        self._must_answer = must_answer
        self._tables: list[Table] = []

    @property
    def bootstrap_servers(self) -> str:
        return self._connection.bootstrap_servers

    def table(self, topic: str, *, key: str = "string", value: str = "json") -> Table:
        """The table of an existing topic; codecs are string, json, bytes and int."""
        if self._must_answer:
            self._connection.topic(topic)
        # Replicas of a temporary cluster are deleted with it.
        replicas = self._local.folder / "replicas" if self._local is not None and self._local.temporary else None
        table = Table(self._connection, topic, key=key, value=value, replicas=replicas)
        self._tables.append(table)
        return table

    def create_table(
        self,
        topic: str,
        *,
        partitions: int | None = None,
        replication: int | None = None,
        settings: Mapping[str, str] | None = None,
        key: str = "string",
        value: str = "json",
        exist_ok: bool = False,
    ) -> Table:
        """Creates a compacted topic and returns its table; with `exist_ok` an existing topic is used unchanged."""
        try:
            create_topic(
                self._connection, topic, partitions=partitions, replication=replication, settings=settings or {}
            )
        except AlreadyExists:
            if not exist_ok:
                raise
        return self.table(topic, key=key, value=value)

    def close(self) -> None:
        try:
            for table in self._tables:
                table.close()
        finally:
            if self._local is not None:
                self._local.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(bootstrap_servers: str, *, must_answer: bool = True, **client_settings: Any) -> Cluster:
    """A running cluster; settings have librdkafka's names with underscores for dots (`sasl_username="..."`).

    With `must_answer=False` the cluster may be unreachable at first: for a program that has a replica on disk.
    """
    properties = {name.replace("_", "."): value for name, value in client_settings.items()}
    connection = Connection(bootstrap_servers=bootstrap_servers, properties=properties)
    if must_answer:
        connection.reach()
    return Cluster(connection, must_answer=must_answer)


def local(
    name: str | None = None,
    *,
    brokers: int | None = None,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
    secure: bool = False,
    home: Path | None = None,
) -> Cluster:
    """A local cluster that stops with this process, however the process ends.

    Without a name the cluster is new and leaves nothing behind; with a name its topics are kept in the home. A cluster
    that another process started is used, and keeps running. A `secure` cluster asks for passwords, and this program is
    its administrator.
    """
    base = home or default_home()
    if name is None:
        cluster = LocalCluster.fresh(default_jars(base), "temporary")
    else:
        cluster = LocalCluster.at(base, default_jars(base), name, owned=True)
    try:
        cluster.start(brokers=brokers, port=port, settings=settings, security="scram" if secure else None)
    except BaseException:
        cluster.close()
        raise
    return Cluster(cluster.connection, cluster)
