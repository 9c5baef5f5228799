"""What Spark's driver is started with, without starting it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lastword.spark
from lastword.jvm.class_archive import ClassArchive
from lastword.jvm.java import Java
from lastword.spark.session.driver import driver_environment, executors_python, java_options
from support.canary import CANARY

JAVA_HOME = Path(lastword.spark.__file__).parent / "session" / "java_home"
ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def passed_on(version: int, *words: str, folder: Path) -> list[str]:
    """What a Java of that version gets when Spark's launcher gives these words to JAVA_HOME's."""
    java = folder / "a java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    environ = {**os.environ, "LASTWORD_SPARK_JAVA": str(java), "LASTWORD_SPARK_JAVA_VERSION": str(version)}
    command = [str(JAVA_HOME / "bin" / "java"), *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_module_that_not_every_java_has_is_left_out(tmp_path: Path) -> None:
    words = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "-Dx='$y'", "Main", ""]

    assert passed_on(17, *words, folder=tmp_path) == ["-cp", "a b:c", "-Dx='$y'", "Main", ""]


def test_a_package_that_is_gone_since_java_25_is_left_out_there(tmp_path: Path) -> None:
    assert passed_on(21, ACTION, "Main", folder=tmp_path) == [ACTION, "Main"]
    assert passed_on(25, ACTION, "Main", folder=tmp_path) == ["Main"]


def test_options_given_come_last_and_paths_with_spaces_stay_whole() -> None:
    archive = ClassArchive(path=Path("x"), options=("-XX:SharedArchiveFile=/a folder/x.jsa",))

    options = java_options(archive, "-Dmine=1")

    assert '"-XX:SharedArchiveFile=/a folder/x.jsa"' in options
    assert options.endswith(" -Dmine=1")


@pytest.mark.parametrize(
    ("settings", "environ", "local", "python"),
    [
        ({}, None, True, sys.executable),
        ({}, None, False, sys.executable),
        ({}, "/there/python", True, sys.executable),
        ({}, "/there/python", False, "/there/python"),
        ({"spark.pyspark.python": "/mine"}, "/there/python", False, "/mine"),
        ({"spark.pyspark.python": "/mine"}, None, True, "/mine"),
    ],
)
def test_executors_run_the_python_that_is_right_there(
    settings: dict[str, str], environ: str | None, local: bool, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if environ:
        monkeypatch.setenv("PYSPARK_PYTHON", environ)

    assert executors_python(settings, local=local) == python


def test_the_environment_is_as_before_once_the_jvm_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/another/spark")
    monkeypatch.setenv("LASTWORD_SECRET_OLD", "of another session")
    monkeypatch.setenv("JAVA_HOME", "/mine")
    before = dict(os.environ)
    java = Java(executable=Path("/java"), version=17, origin="PATH")

    with driver_environment(java, "/python", "127.0.0.1", {"LASTWORD_SECRET_A": CANARY}):
        inside = dict(os.environ)

    assert dict(os.environ) == before
    assert inside["JAVA_HOME"] == str(JAVA_HOME)
    assert inside["PYSPARK_PYTHON"] == "/python"
    assert inside["LASTWORD_SECRET_A"] == CANARY
    assert "SPARK_HOME" not in inside
    assert "LASTWORD_SECRET_OLD" not in inside
