"""Kafka Streams as a command: its locked jars, and the Java program of this folder, compiled for the run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.measuring.plan import LeftOut, Plan
from lastword.core.errors import JarsUnavailable
from lastword.jvm.jars import committed_lock, ensure_jars
from lastword.jvm.java import Java, find_java

_PROGRAM = "KafkaStreamsRestore"
_SOURCE = Path(__file__).with_name(f"{_PROGRAM}.java")


def compiled_streams(plan: Plan, classes: Path) -> list[str]:
    """The command that restores with Kafka Streams, without its arguments; LeftOut without a JDK."""
    java = find_java()
    javac = _javac(java)
    if javac is None:
        raise LeftOut("Kafka Streams, because no javac is beside java or on the PATH")
    try:
        jars = ensure_jars(committed_lock("benchmarks.alternatives", "benchmark"), plan.jars, java, plan.report)
    except JarsUnavailable as failure:
        plan.report(str(failure))
        raise LeftOut("Kafka Streams, because its jars could not be fetched") from failure
    class_path = ":".join(map(str, jars))
    compiled = subprocess.run(
        # For the java that runs it, which may be older than the javac.
        [javac, "--release", str(java.version), "-d", classes, "-cp", class_path, _SOURCE],
        capture_output=True,
        text=True,
        check=False,
    )
    if compiled.returncode != 0:
        # The reason may name folders, so it is reported here and not on the page.
        plan.report(compiled.stderr.strip())
        raise LeftOut("Kafka Streams, because javac could not compile its source")
    options = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [str(java.executable), *options, "-cp", f"{classes}:{class_path}", _PROGRAM]


def _javac(java: Java) -> Path | None:
    beside = java.executable.resolve().parent / "javac"
    if beside.exists():
        return beside
    on_path = shutil.which("javac")
    return Path(on_path) if on_path else None
