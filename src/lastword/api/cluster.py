"""A cluster as a Python program sees it: `connect` to one, or have a local one while a `with` block lasts."""

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
    """Tables of one Kafka cluster; the end of the `with` block closes them, and stops the cluster if it is ours."""

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
        """The table in a topic that exists; codecs are string, json, bytes and int."""
        if self._must_answer:
            self._connection.topic(topic)
        # What belongs to a temporary cluster goes with it.
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
        """Makes a compacted topic and gives its table; with `exist_ok` one that is there is taken as it is."""
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
    """A cluster that runs already; settings in librdkafka's names, dots as underscores (`sasl_username="..."`).

    With `must_answer=False` it may be away for now: for a program that has a replica on disk to go on with.
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
    """A local cluster that ends with this process, however it ends.

    Without a name it is a fresh one that leaves nothing behind; with a name its topics are kept under the home. One
    that runs already, because someone else started it, is used and goes on running. A `secure` one asks for passwords,
    and this program is its administrator.
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
