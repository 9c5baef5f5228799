"""The Spark session: one builder for a laptop and a cluster, with the connector's jars, the right Java and Python.

Spark's own start costs seconds, most of it spent on loading classes: the JVM keeps them in an archive after its first
run and maps them from then on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lastword.core.errors import BadInput, LastwordError
from lastword.core.home import default_home, default_jars
from lastword.kafka.connection import Connection
from lastword.kafka.jars import JarLock, committed_lock, ensure_jars
from lastword.kafka.java import Java, find_java
from lastword.spark.client_settings import SECRET_PREFIX, JavaSettings, java_settings
from lastword.spark.java_home import java_home

_LOCAL = {
    # A laptop's own driver, for nobody else on the network.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Two tasks a core are enough for two cores; adaptive execution makes them fewer when there is little.
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",
}
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A progress bar of Spark's would run into what a command prints.
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

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
    running = SparkContext._active_spark_context
    if running is not None:
        if _connections.get(running) != connection:
            raise BadInput("a Spark session for another cluster runs in this process: stop it first, with spark.stop()")
        return SparkSession(running)
    java, cache = find_java(), jars or default_jars(default_home())
    paths = ensure_jars(spark_lock(), cache, java, tell)
    client = java_settings(connection)
    conf = SparkConf(loadDefaults=False)
    conf.setMaster(master).setAppName("lastword")
    for name, value in _settings(master, paths, _java_options(java, cache), delta=delta, ui=ui, given=settings).items():
        conf.set(name, value)
    with _environment(java, cache, client):
        try:
            # The secrets apart: what is in the configuration when the JVM starts is on its command line.
            context = SparkContext(conf=conf, environment=dict(client.secrets))
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


def _settings(
    master: str,
    jars: tuple[Path, ...],
    java_options: list[str],
    *,
    delta: bool,
    ui: bool,
    given: Mapping[str, str] | None,
) -> dict[str, str]:
    given = dict(given or {})
    for name in given:
        if not name.startswith("spark."):
            raise BadInput(f"Spark setting {name}: Spark's settings start with spark.")
    local = master.startswith("local")
    ours = {**_ALWAYS, **(_LOCAL if local else {}), **(_DELTA if delta else {})}
    ours["spark.ui.enabled"] = str(ui).lower()
    ours["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    if not local:
        # Executors elsewhere have no such folder: they fetch the jars from the driver.
        ours["spark.jars"] = ",".join(map(str, jars))
    options = " ".join([*java_options, given.pop("spark.driver.extraJavaOptions", "")]).strip()
    return {**ours, **given, "spark.driver.extraJavaOptions": options}


def _java_options(java: Java, cache: Path) -> list[str]:
    options = ["-XX:-UsePerfData"]
    archive = cache / f"{spark_lock().folder_name}-java{java.version}.jsa"
    if java.version >= 19:
        options += ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"]
    return options


@contextmanager
def _environment(java: Java, cache: Path, client: JavaSettings) -> Iterator[None]:
    """What the driver's JVM inherits, while it is started."""
    wanted = {
        "JAVA_HOME": str(java_home(java, cache)),
        # Or Spark takes the first python3 of the PATH, which may be any.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
        **client.secrets,
    }
    gone = [name for name in os.environ if name.startswith(SECRET_PREFIX)] + ["SPARK_HOME", "SPARK_CONF_DIR"]
    before = {name: os.environ.get(name) for name in {*wanted, *gone}}
    for name in gone:
        os.environ.pop(name, None)
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
