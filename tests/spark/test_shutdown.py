"""However a program ends, no JVM is left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.processes import alive, children_of
from support.programs import SESSION, jars_without_archives, run, start
from support.waiting import eventually

JOB_WITHOUT_END = """
print(jvm, flush=True)
spark.range(10**13).selectExpr("sum(xxhash64(id))").collect()
"""


def test_a_program_that_says_nothing_of_stopping_leaves_no_jvm() -> None:
    out = run(SESSION + "print(spark.range(10).count(), jvm)", {})

    count, jvm = out.split()
    assert count == "10"
    assert not alive(int(jvm))


def test_after_stop_the_jvm_is_gone_and_another_session_can_be_made() -> None:
    out = run(
        SESSION
        + """
import os
stop(spark)
try:
    os.kill(jvm, 0)
except ProcessLookupError:
    print("gone")
spark = session(Connection(bootstrap_servers="127.0.0.1:2"), master="local[1]")
print(spark.range(10).count())
""",
        {},
    )

    assert out.split() == ["gone", "10"]


def test_ctrl_c_ends_a_running_job_its_program_and_its_jvm() -> None:
    program = start(SESSION + JOB_WITHOUT_END, {})
    try:
        assert program.stdout is not None
        jvm = int(program.stdout.readline())
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
    finally:
        program.kill()

    assert program.returncode == -signal.SIGINT, err
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "ERROR" not in err
    assert not alive(jvm)


def test_ctrl_c_while_the_jvm_starts_ends_it() -> None:
    program = start(SESSION, {})
    try:
        eventually(lambda: bool(children_of(program.pid, "org.apache.spark.deploy.SparkSubmit")), within_s=60)
        (jvm,) = children_of(program.pid, "org.apache.spark.deploy.SparkSubmit")
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
    finally:
        program.kill()

    assert program.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert not alive(jvm)


@pytest.mark.parametrize("made", ["SparkContext", "SparkSession"])
def test_ctrl_c_while_the_session_is_made_ends_the_jvm_without_a_word_of_py4j(made: str) -> None:
    program = start(
        f"""
import signal, sys, threading
import lastword.spark
module = sys.modules["lastword.spark.session.session"]
original = module.{made}
def interrupted(*words, **options):
    threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
    return original(*words, **options)
interrupted._active_spark_context = None
module.{made} = interrupted
"""
        + SESSION,
        {},
    )
    try:
        out, err = program.communicate(timeout=60)
    finally:
        program.kill()

    assert (program.returncode, out) == (-signal.SIGINT, "")
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "ERROR" not in err
    assert "reentrant" not in err


def test_ctrl_c_while_a_session_is_stopped_ends_the_jvm_and_is_told() -> None:
    # The JVM sleeps: it is certain that somebody waits for its end.
    program = start(
        SESSION
        + """
import os, signal, threading
stopping = spark.sparkContext._gateway.proc
spark.stop()
os.kill(jvm, signal.SIGSTOP)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    stop(spark)
except KeyboardInterrupt:
    print("told", stopping.poll())
""",
        {},
    )
    try:
        out, err = program.communicate(timeout=120)
    finally:
        program.kill()

    assert (out.split(), err) == (["told", str(-signal.SIGKILL)], "")


FAILS = """
import sys, warnings
# PySpark leaves the pipe of a JVM that has not started open.
warnings.simplefilter("ignore", ResourceWarning)
from pathlib import Path
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.spark.session.session import session
try:
    session(Connection(bootstrap_servers="127.0.0.1:1"), settings={settings!r}, jars=Path({jars!r}))
except LastwordError as refusal:
    print(refusal)
"""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"spark.driver.memory": "2 potatoes"}, "Invalid maximum heap size: -Xmx2 potatoes"),
        ({"spark.driver.port": "abc"}, "The value 'abc' in the config \"spark.driver.port\" is invalid"),
    ],
)
def test_a_start_that_fails_says_why_in_one_line_and_leaves_no_archive(
    settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    jars = jars_without_archives(tmp_path / "jars")

    out = run(FAILS.format(settings=settings, jars=str(jars)), {})

    assert len(out.splitlines()) == 1
    assert out.startswith("Spark would not start at local[*]: ")
    assert reason in out
    assert out.endswith(": check --master and the settings\n")
    assert [path.name for path in jars.glob("*spark*.jsa")] == []
