"""How the driver's JVM is started: Java, its options, its environment, its class archive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pyspark

from lastword.jvm.class_archive import ClassArchive, class_archive
from lastword.jvm.java import COMPILE_LATER, Java
from lastword.jvm.quoting import quoted
from lastword.spark.session.client_settings import SECRET_PREFIX

_HERE = Path(__file__).parent
# A value in XML may name a document type at an address of its choice, and xpath would fetch it, and wait for it.
NOTHING_OUTSIDE = "-Djavax.xml.accessExternalDTD= -Djavax.xml.accessExternalSchema="
# With these PySpark would use another Spark, settings of another program, or a JVM that runs already.
_MISLEADING = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")


def spark_archive(java: Java, cache: Path, lock: str, jars: tuple[Path, ...]) -> ClassArchive:
    """The class archive of Spark with the jars of a lock."""
    own = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    return class_archive(java, cache, f"{lock}-pyspark{version('pyspark')}", [*jars, *own])


def java_options(archive: ClassArchive, given: str) -> str:
    """The driver's Java options, in Spark's quoting; those given come last and so win."""
    log = f"-Dlog4j2.configurationFile={_HERE / 'log4j2.properties'}"
    ours = ["-XX:-UsePerfData", *COMPILE_LATER, *archive.options, log]
    return " ".join([*map(quoted, ours), NOTHING_OUTSIDE, given]).strip()


def executors_python(settings: Mapping[str, str], *, local: bool) -> str:
    """The Python that runs functions in executors; on a cluster it may have another path than ours."""
    elsewhere = None if local else os.environ.get("PYSPARK_PYTHON")
    # Always set: Spark would take the first python3 of the PATH.
    return settings.get("spark.pyspark.python") or elsewhere or sys.executable


@contextmanager
def driver_environment(java: Java, python: str, local_ip: str | None, secrets: Mapping[str, str]) -> Iterator[None]:
    """In the block os.environ is the environment that the JVM inherits."""
    wanted = {
        "JAVA_HOME": str(_HERE / "java_home"),
        "LASTWORD_SPARK_JAVA": str(java.executable),
        "LASTWORD_SPARK_JAVA_VERSION": str(java.version),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
        **({} if local_ip is None else {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", local_ip)}),
        **secrets,
    }
    gone = [name for name in os.environ if name.startswith(SECRET_PREFIX) or name in _MISLEADING]
    before = {name: os.environ.get(name) for name in {*wanted, *gone}}
    for name in gone:
        del os.environ[name]
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
