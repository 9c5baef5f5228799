"""Python programs as processes, for tests of the end of a process: a session, its JVM, an interrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lastword.core.home import default_home, default_jars
from lastword.jvm.jars import broker_jar_lock, spark_jar_lock

# A session without a cluster: Spark itself connects to none.
SESSION = """
from lastword.kafka.client.connection import Connection
from lastword.spark.session.session import session
from lastword.spark import stop
spark = session(Connection(bootstrap_servers="127.0.0.1:1"), master="local[2]")
jvm = spark.sparkContext._gateway.proc.pid
"""


def start(program: str, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """Starts the program, with warnings as errors and with pipes for its output."""
    command = [sys.executable, "-W", "error", "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, **environ}, stdout=pipe, stderr=pipe, text=True)


def run(program: str, environ: Mapping[str, str], timeout_s: float = 300) -> str:
    """The output of the program, which must succeed and print nothing to standard error."""
    process = start(program, environ)
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, ""), f"exit code {process.returncode}, standard error: {err}"
    return out


def jars_without_archives(cache: Path) -> Path:
    """A cache with only the jars of Spark and of the broker, as links."""
    cache.mkdir()
    for lock in (spark_jar_lock(), broker_jar_lock()):
        (cache / lock.folder_name).symlink_to(default_jars(default_home()) / lock.folder_name)
    return cache
