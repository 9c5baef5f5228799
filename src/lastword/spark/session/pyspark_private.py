"""The private parts of PySpark that lastword uses, each behind a function; no other file uses them (a test checks it).

PySpark promises nothing about names with a leading underscore. The last sentence of each docstring says what breaks
when a new version of PySpark moves the name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import DataFrame, SparkSession, SQLContext


def jvm_of(spark: SparkSession) -> Any:
    """The classes of the JVM, by their full names. Without it no query, export by URL or pipeline runs."""
    return spark._jvm


def java_session(spark: SparkSession) -> Any:
    """The session as Java has it. Without it no query, export by URL or pipeline runs."""
    return spark._jsparkSession


def session_state(spark: SparkSession) -> Any:
    """The parser, the functions and the settings of a session. Without it no query, export by URL or pipeline runs."""
    return java_session(spark).sessionState()


def sql_parser(spark: SparkSession) -> Any:
    """Spark's own parser. Without it no query is checked before it runs, and no pipeline starts."""
    return session_state(spark).sqlParser()


def analysed_plan(frame: DataFrame) -> Any:
    """The plan of a frame with all names looked up. Without it a query's reach and a pipeline's rules go unchecked."""
    return frame._jdf.queryExecution().analyzed()


def java_frame(java_spark: Any, plan: Any, jvm: Any) -> Any:
    """A plan as a frame of Java's, analysed. Without it no query runs, and no schema is inferred."""
    return jvm.org.apache.spark.sql.classic.Dataset.ofRows(java_spark, plan)


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """A parsed plan as a frame, analysed. Without it no query runs."""
    return DataFrame(java_frame(java_session(spark), plan, jvm_of(spark)), spark)


def set_active(spark: SparkSession, java_spark: Any = None) -> None:
    """Makes a session the active one: every parser of Spark takes the settings of the active session.

    `java_spark` is another session of the same JVM. Without it a query may read the environment, and sums may wrap.
    """
    sessions = jvm_of(spark).org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(java_session(spark) if java_spark is None else java_spark)


def is_java_instance(spark: SparkSession, thing: Any, kind: str) -> bool:
    """Whether an object of Java's is of a class or below it. Without it a query that writes is not recognised."""
    return bool(is_instance_of(spark.sparkContext._gateway, thing, kind))


def active_context() -> SparkContext | None:
    """The SparkContext of this process, maybe half made. Without it a second session is not refused."""
    return SparkContext._active_spark_context


def has_jobs(context: SparkContext) -> bool:
    """Whether a context is made and can run jobs. Without it Ctrl-C during a start asks a context that is half made."""
    return hasattr(context, "_jsc")


def launch_jvm(conf: SparkConf, *, stderr: int) -> Any:
    """Starts a JVM that writes its errors to a file descriptor. Without it a failed start prints a stack of Java's."""
    return java_gateway.launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]


def gateway() -> Any:
    """The connection to the JVM, with its process as `proc`; None without a JVM. Without it the JVM can't be ended."""
    return SparkContext._gateway


def counters_server(context: SparkContext | None) -> Any:
    """Where the JVM sends the counters of tasks; None without one, and in a context that is still being made.

    Without it a stack is printed whenever the JVM ends.
    """
    return getattr(context, "_accumulatorServer", None)


def ignore_garbage(gateway: Any) -> None:
    """Stops the thread of py4j that tells the JVM which objects are garbage.

    Without it py4j logs a stack when the JVM is gone.
    """
    gateway._gateway_client.garbage_collect_object = _ignore


def forget_jvm() -> None:
    """Clears PySpark's memory of a JVM that is gone. Without it the next session of the process asks the dead JVM."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


@contextmanager
def launched_process(on_launch: Callable[[subprocess.Popen[bytes]], None]) -> Iterator[None]:
    """In the block `on_launch` gets the process of a JVM as soon as PySpark starts it.

    PySpark itself shows the process only when the JVM has answered. Without it Ctrl-C during a start leaves a JVM.
    """
    module: Any = java_gateway
    popen = module.Popen

    def launch(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = popen(*words, **options)
        on_launch(process)
        return process

    module.Popen = launch
    try:
        yield
    finally:
        module.Popen = popen


def _ignore(*_: object) -> None:
    pass
