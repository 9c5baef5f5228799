"""A Spark cluster of processes on loopback: a master and workers, from the pyspark package, as on real machines."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

import lastword.spark
from lastword.jvm.java import find_java
from support.waiting import eventually

_JAVA_OPTIONS = [
    # Spark's launcher would add these for a master and for a worker.
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "java.util", "sun.nio.ch")),
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx256m",
]


@contextmanager
def standalone(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """The address of a master (`spark://...`) with workers of one core and 512 MB each; ended with the block."""
    with ExitStack() as running:
        master_log = folder / "master.log"
        _start(running, master_log, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        eventually(lambda: _address(master_log) is not None, within_s=120)
        master = _address(master_log)
        assert master is not None
        for number in range(workers):
            place = folder / f"worker-{number}"
            size = ("--cores", "1", "--memory", "512m", "--work-dir", str(place))
            address = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            _start(running, folder / f"worker-{number}.log", "worker.Worker", *address, *size, master)
        eventually(lambda: _text(master_log).count("Registering worker") == workers, within_s=120)
        yield master


def _start(running: ExitStack, log: Path, name: str, *words: str) -> None:
    package, java = Path(pyspark.__file__).parent, find_java()
    main = f"org.apache.spark.deploy.{name}"
    command = [str(java.executable), *_JAVA_OPTIONS, "-cp", f"{package}/jars/*", main, *words]
    environment = {
        **os.environ,
        # A worker builds the command of an executor from these, as Spark's scripts do.
        "SPARK_HOME": str(package),
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(Path(lastword.spark.__file__).parent / "java_home"),
        "LASTWORD_SPARK_JAVA": str(java.executable),
        "LASTWORD_SPARK_JAVA_VERSION": str(java.version),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=log.parent
        )
    running.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(log: Path) -> str | None:
    match = re.search(r"Starting Spark master at (spark://\S+)", _text(log))
    return match[1] if match else None


def _text(log: Path) -> str:
    return log.read_text(errors="replace")
