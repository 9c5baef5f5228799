"""Python programs of their own, for what ends with a process: a session, its JVM, an interrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lastword.core.home import default_home, default_jars
from lastword.jvm.jars import spark_jar_lock

# A session with nothing behind it: Spark itself asks no cluster.
SESSION = """
from lastword.kafka.client.connection import Connection
from lastword.spark.session.session import session
from lastword.spark import stop
spark = session(Connection(bootstrap_servers="127.0.0.1:1"), master="local[2]")
jvm = spark.sparkContext._gateway.proc.pid
"""


def start(program: str, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """The program as a process, warnings as errors; its output and its errors in pipes."""
    command = [sys.executable, "-W", "error", "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, **environ}, stdout=pipe, stderr=pipe, text=True)


def run(program: str, environ: Mapping[str, str], timeout_s: float = 300) -> str:
    """What it prints; it must end well, and say nothing on standard error."""
    process = start(program, environ)
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, ""), f"it ended with {process.returncode} and said: {err}"
    return out


def jars_without_archives(cache: Path) -> Path:
    """A cache with Spark's jars and nothing else, which costs no copy."""
    cache.mkdir()
    name = spark_jar_lock().folder_name
    (cache / name).symlink_to(default_jars(default_home()) / name)
    return cache
