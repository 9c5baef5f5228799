"""The Spark session: one builder for a laptop and a cluster, with the connector's jars, the right Java and Python."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput, LastwordError
from lastword.core.home import default_home, default_jars
from lastword.kafka.connection import Connection
from lastword.kafka.jars import JarLock, committed_lock, ensure_jars
from lastword.kafka.java import find_java
from lastword.spark.client_settings import java_settings
from lastword.spark.driver import driver_environment, executors_python, java_options, spark_archive
from lastword.spark.ending import end_jvm, watched

_LOOPBACK = "127.0.0.1"
_LOCAL = {
    # A laptop's own driver, for nobody else on the network.
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    # Two tasks a core are enough for two cores; adaptive execution makes them fewer when there is little.
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",
}
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A progress bar of Spark's would run into what a command prints.
    "spark.ui.showConsoleProgress": "false",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Settings that are lists, and what stands between two of them.
_LISTS = {"spark.driver.extraClassPath": os.pathsep, "spark.jars": ",", "spark.sql.extensions": ","}

_connections: WeakKeyDictionary[SparkContext, Connection] = WeakKeyDictionary()


def spark_lock() -> JarLock:
    """The jars of the Kafka connector and of Delta, as committed with lastword."""
    return committed_lock("lastword.spark", "spark")


def session(
    connection: Connection,
    *,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    delta: bool = False,
    ui: bool = False,
    jars: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """A session whose tables are the topics of a cluster; `settings` are any of Spark's and win over ours.

    There is one in a process: while it runs, it is given again, and BadInput says when it is another cluster's.
    """
    running = _running(connection)
    if running is not None:
        return running
    # A JVM without a session has the environment of its former one, whose secrets may be others.
    end_jvm()
    given = _checked(settings or {})
    master = given.get("spark.master", master)
    java, cache, lock, client = (
        find_java(),
        jars or default_jars(default_home()),
        spark_lock(),
        java_settings(connection),
    )
    paths = ensure_jars(lock, cache, java, tell)
    archive = spark_archive(java, cache.absolute(), lock.folder_name, paths)
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("lastword")
    for name, value in _merged(_defaults(master, paths, delta=delta, ui=ui), given).items():
        conf.set(name, value)
    conf.set("spark.driver.extraJavaOptions", java_options(archive, given.get("spark.driver.extraJavaOptions", "")))
    # Where the driver's address is told, what it shows besides (its UI) is for this machine alone.
    local_ip = _LOOPBACK if conf.contains("spark.driver.host") else None
    python = executors_python(given, local=_is_local(master))
    with driver_environment(java, python, local_ip, client.secrets), watched(archive):
        try:
            # Secrets apart from the configuration, which is on the JVM's command line. Executors on this machine have
            # them from the driver.
            context = SparkContext(conf=conf, environment={} if _is_local(master) else dict(client.secrets))
        except Exception as failure:
            reason = str(failure).strip().splitlines()[0]
            raise LastwordError(
                f"Spark would not start at {master}: {reason}: check --master and the settings"
            ) from failure
    _connections[context] = connection
    return SparkSession(context)


def connection_of(spark: SparkSession) -> Connection:
    """The cluster whose topics a session reads; BadInput for a session that lastword did not make."""
    connection = _connections.get(spark.sparkContext)
    if connection is None:
        raise BadInput("this Spark session is not lastword's: make it with  lastword.spark.session(...)")
    return connection


def _running(connection: Connection) -> SparkSession | None:
    """The session of this process; BadInput when it can't serve the connection."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise BadInput("lastword starts Spark's JVM itself: run the program with python and not with spark-submit")
    context = SparkContext._active_spark_context
    if context is None:
        return None
    if context not in _connections:
        raise BadInput("a Spark session that is not lastword's runs in this process: stop it first, with spark.stop()")
    if _connections[context] != connection:
        raise BadInput(
            "a Spark session for another cluster runs in this process: stop it first, with  lastword.spark.stop(spark)"
        )
    return SparkSession(context)


def _checked(settings: Mapping[str, str]) -> Mapping[str, str]:
    for name in settings:
        if not name.startswith("spark."):
            raise BadInput(f"Spark setting {name}: Spark's settings start with spark.")
    return settings


def _merged(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Those given win; lists of what we need as well are joined."""
    joined = {
        name: f"{ours[name]}{mark}{given[name]}" for name, mark in _LISTS.items() if name in ours and name in given
    }
    return {**ours, **given, **joined}


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _defaults(master: str, jars: tuple[Path, ...], *, delta: bool, ui: bool) -> dict[str, str]:
    """Every setting of ours, before those that are given."""
    ours = {**_ALWAYS, **(_DELTA if delta else {})}
    ours["spark.ui.enabled"] = str(ui).lower()
    ours["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    if _is_local(master):
        return {**ours, **_LOCAL}
    # Executors elsewhere have no such folder: they fetch the jars from the driver.
    ours["spark.jars"] = ",".join(map(str, jars))
    if (address := _address_towards(master)) is not None:
        ours["spark.driver.host"] = address
    return ours


def _address_towards(master: str) -> str | None:
    """The address of this machine that a standalone cluster can reach; None for another kind, or an unknown host."""
    if not master.startswith("spark://"):
        return None
    host, _, port = master.removeprefix("spark://").partition(",")[0].rpartition(":")
    try:
        # Connecting a datagram socket sends nothing: the kernel only chooses the way.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((host, int(port)))
            return str(towards.getsockname()[0])
    except (OSError, ValueError):
        return None
