"""The Spark session: one builder for a laptop and a cluster, with the connector's jars, the right Java and Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput, LastwordError
from lastword.core.home import default_home, default_jars
from lastword.jvm.class_archive import ClassArchive
from lastword.jvm.jars import ensure_jars, spark_jar_lock
from lastword.jvm.java import find_java
from lastword.kafka.client.connection import Connection
from lastword.spark.session.client_settings import java_settings
from lastword.spark.session.driver import (
    NOTHING_OUTSIDE,
    driver_environment,
    executors_python,
    java_options,
    spark_archive,
)
from lastword.spark.session.jvm_errors import JvmErrors, java_text, reason_of
from lastword.spark.session.pyspark_private import active_context, launch_jvm
from lastword.spark.session.settings import LOOPBACK, checked, checked_master, is_local, session_settings
from lastword.spark.session.shutdown import end_jvm, handle_interrupts, watched

_ANY_MASTER = "local[*]"
# These ask for this machine without wishes: a running session will do. `lastword run` asks for the second.
_ANY_MASTERS = (_ANY_MASTER, "local[*,4]")


@dataclass(frozen=True, kw_only=True)
class _SessionRequest:
    """The arguments that a session was made with."""

    master: str
    settings: Mapping[str, str]
    delta: bool
    ui: bool


_connections: WeakKeyDictionary[SparkContext, Connection] = WeakKeyDictionary()
_ways: WeakKeyDictionary[SparkContext, _SessionRequest] = WeakKeyDictionary()


def session(
    connection: Connection,
    *,
    master: str = _ANY_MASTER,
    settings: Mapping[str, str] | None = None,
    delta: bool = False,
    ui: bool = False,
    jars: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """A session whose tables are the topics of a cluster; `settings` are any of Spark's and override ours.

    A process has one session. While the session runs, it is returned again; BadInput if it belongs to another cluster,
    or lacks something that this call needs.
    """
    if not isinstance(connection, Connection):
        raise BadInput(
            f"session({connection!r}): give a connection, like  "
            'lastword.spark.Connection(bootstrap_servers="127.0.0.1:9092")'
        )
    given = checked(settings or {})
    master = checked_master(given.get("spark.master", master))
    asked = _SessionRequest(master=master, settings=dict(given), delta=delta, ui=ui)
    running = _running(connection, asked)
    if running is not None:
        return running
    # A JVM without a session has the environment of its former session, maybe with other secrets.
    end_jvm()
    java, cache, lock, client = (
        find_java(),
        jars or default_jars(default_home()),
        spark_jar_lock(),
        java_settings(connection),
    )
    paths = ensure_jars(lock, cache, java, tell)
    archive = spark_archive(java, cache.absolute(), lock.folder_name, paths)
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("lastword")
    # By default Spark makes a folder for tables in the current directory.
    conf.set("spark.sql.warehouse.dir", (cache.absolute() / "warehouse").as_uri())
    for name, value in session_settings(master, paths, given, delta=delta, ui=ui).items():
        conf.set(name, value)
    conf.set("spark.driver.extraJavaOptions", java_options(archive, given.get("spark.driver.extraJavaOptions", "")))
    of_executors = f"{NOTHING_OUTSIDE} {given.get('spark.executor.extraJavaOptions', '')}"
    conf.set("spark.executor.extraJavaOptions", of_executors.strip())
    # If the driver's address is set, everything else that it opens (its UI) is for this machine alone.
    local_ip = LOOPBACK if conf.contains("spark.driver.host") else None
    python = executors_python(given, local=is_local(master))
    # Secrets are not part of the configuration, which is on the JVM's command line. Executors on this machine get them
    # from the driver.
    to_executors = {} if is_local(master) else dict(client.secrets)
    scratch = _scratch() if is_local(master) and "spark.local.dir" not in given else None
    if scratch is not None:
        conf.set("spark.local.dir", str(scratch))
    with driver_environment(java, python, local_ip, client.secrets):
        spark = _started(conf, to_executors, archive, scratch, tell)
    _connections[spark.sparkContext] = connection
    _ways[spark.sparkContext] = asked
    return spark


def connection_of(spark: SparkSession) -> Connection:
    """The cluster whose topics a session reads; BadInput for a session that lastword did not make."""
    connection = _connections.get(spark.sparkContext)
    if connection is None:
        raise BadInput("this Spark session is not lastword's: make it with  lastword.spark.session(...)")
    return connection


def _scratch() -> Path:
    """A private folder for the rows that Spark moves to the disk, and that pass between it and Python."""
    return Path(tempfile.mkdtemp(prefix="lastword-spark-"))


def _started(
    conf: SparkConf,
    to_executors: dict[str, str],
    archive: ClassArchive,
    scratch: Path | None,
    tell: Callable[[str], None],
) -> SparkSession:
    errors = JvmErrors()
    try:
        with watched(archive, errors, tell, scratch), java_text():
            gateway = launch_jvm(conf, stderr=errors.writer)
            errors.launched()
            context = SparkContext(gateway=gateway, conf=conf, environment=to_executors)
            handle_interrupts()
            spark = SparkSession(context)
    except Exception as failure:
        reason = reason_of(failure, errors.ended())
        raise LastwordError(
            f"Spark would not start at {conf.get('spark.master')}: {reason}: check --master and the settings"
        ) from failure
    errors.release()
    return spark


def _running(connection: Connection, asked: _SessionRequest) -> SparkSession | None:
    """The session of this process; BadInput if it was made with other arguments."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise BadInput("lastword starts Spark's JVM itself: run the program with python and not with spark-submit")
    context = active_context()
    if context is None:
        return None
    if context not in _connections:
        raise BadInput("a Spark session that is not lastword's runs in this process: stop it first, with spark.stop()")
    other = "for another cluster" if _connections[context] != connection else _difference(_ways[context], asked)
    if other is not None:
        raise BadInput(f"a Spark session {other} runs in this process: stop it first, with  lastword.spark.stop(spark)")
    return SparkSession(context)


def _difference(running: _SessionRequest, asked: _SessionRequest) -> str | None:
    """How the running session differs; an argument that has its default is not compared."""
    if asked.master not in (*_ANY_MASTERS, running.master):
        return f"at the master {running.master}"
    for name, value in asked.settings.items():
        if running.settings.get(name) != value and name != "spark.master":
            return f"with another {name}"
    if asked.delta and not running.delta:
        return "without Delta"
    return "without its UI" if asked.ui and not running.ui else None
