"""The end of a session: its JVM with it. PySpark leaves that one running until Python itself ends."""

from __future__ import annotations

import subprocess

from pyspark import SparkContext
from pyspark.sql import SparkSession

# The JVM ends by itself in well under a second; after its first run it writes the class archive, which takes a few.
_PATIENCE_S = 60.0


def stop(spark: SparkSession) -> None:
    """Ends the session and its JVM, and returns when that is gone; another session may be made afterwards."""
    spark.stop()
    end_jvm()


def end_jvm() -> int | None:
    """The exit status of the JVM that was running; None when there was none."""
    gateway = SparkContext._gateway
    if gateway is None:
        return None
    SparkContext._gateway = None
    SparkContext._jvm = None
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    if process.stdin is not None:
        # It reads until its input ends, and then ends itself.
        process.stdin.close()
    try:
        return process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
