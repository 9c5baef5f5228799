"""The Spark session: one builder for a laptop and a cluster, with the connector's jars, the right Java and Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput, LastwordError
from lastword.core.home import default_home, default_jars
from lastword.kafka.connection import Connection
from lastword.kafka.jars import ensure_jars, spark_lock
from lastword.kafka.java import find_java
from lastword.spark.client_settings import java_settings
from lastword.spark.driver import driver_environment, executors_python, java_options, spark_archive
from lastword.spark.ending import end_jvm, watched
from lastword.spark.settings import LOOPBACK, checked, is_local, session_settings

_connections: WeakKeyDictionary[SparkContext, Connection] = WeakKeyDictionary()


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
    given = checked(settings or {})
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
    # Or Spark makes a folder for tables of its own wherever the command runs.
    conf.set("spark.sql.warehouse.dir", (cache.absolute() / "warehouse").as_uri())
    for name, value in session_settings(master, paths, given, delta=delta, ui=ui).items():
        conf.set(name, value)
    conf.set("spark.driver.extraJavaOptions", java_options(archive, given.get("spark.driver.extraJavaOptions", "")))
    # Where the driver's address is told, what it shows besides (its UI) is for this machine alone.
    local_ip = LOOPBACK if conf.contains("spark.driver.host") else None
    python = executors_python(given, local=is_local(master))
    with driver_environment(java, python, local_ip, client.secrets), watched(archive):
        try:
            # Secrets apart from the configuration, which is on the JVM's command line. Executors on this machine have
            # them from the driver.
            context = SparkContext(conf=conf, environment={} if is_local(master) else dict(client.secrets))
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
