"""Which class archive a JVM is given, and when one is for others: over files, without a JVM."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lastword.jvm.class_archive import ClassArchive, class_archive
from lastword.jvm.java import Java
from lastword.kafka.broker.broker_process import Jvm, archive_options, broker_archive


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """An installation with an archive of its own classes."""
    return install(tmp_path / "java", own_base=True)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "a.jar"
    path.write_bytes(b"a")
    return path


def install(folder: Path, *, own_base: bool, script: str = "exit 1") -> Java:
    program = folder / "bin" / "java"
    (folder / "lib" / "server").mkdir(parents=True)
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (folder / "release").write_text('JAVA_VERSION="17.0.1"\n')
    if own_base:
        (folder / "lib" / "server" / "classes.jsa").touch()
    return Java(executable=program, version=17, origin="PATH")


def written(archive: ClassArchive) -> ClassArchive:
    """As a JVM leaves it at its end."""
    assert archive.unfinished is not None
    archive.unfinished.write_bytes(b"classes")
    return archive


def test_the_first_jvm_writes_under_a_name_of_its_own(java: Java, cache: Path, jar: Path) -> None:
    archive = class_archive(java, cache, "spark-1", [jar])

    assert f"-XX:ArchiveClassesAtExit={archive.unfinished}" in archive.options
    assert archive.unfinished != archive.path
    assert str(os.getpid()) in str(archive.unfinished)


def test_what_a_jvm_wrote_that_ended_well_is_mapped_by_the_next(java: Java, cache: Path, jar: Path) -> None:
    first = written(class_archive(java, cache, "spark-1", [jar]))
    first.finish(whole=True)

    second = class_archive(java, cache, "spark-1", [jar])

    assert second.path == first.path
    assert second.unfinished is None
    assert f"-XX:SharedArchiveFile={first.path}" in second.options
    assert [path.name for path in cache.iterdir()] == [first.path.name]


def test_what_a_jvm_wrote_that_did_not_end_well_is_removed(java: Java, cache: Path, jar: Path) -> None:
    written(class_archive(java, cache, "spark-1", [jar])).finish(whole=False)

    assert list(cache.iterdir()) == []


def test_a_jvm_that_wrote_nothing_is_no_error(java: Java, cache: Path, jar: Path) -> None:
    class_archive(java, cache, "spark-1", [jar]).finish(whole=True)

    assert list(cache.iterdir()) == []


def test_another_build_of_java_and_another_jar_have_another_name(java: Java, cache: Path, jar: Path) -> None:
    names = [class_archive(java, cache, "spark-1", [jar]).path]
    (java.executable.parent.parent / "release").write_text('JAVA_VERSION="17.0.2"\n')
    names.append(class_archive(java, cache, "spark-1", [jar]).path)
    os.utime(jar, ns=(0, 0))
    names.append(class_archive(java, cache, "spark-1", [jar]).path)
    jar.write_bytes(b"longer")
    os.utime(jar, ns=(0, 0))
    names.append(class_archive(java, cache, "spark-1", [jar]).path)

    assert len(set(names)) == 4


def test_a_leftover_of_a_process_that_is_gone_is_removed_and_no_other(java: Java, cache: Path, jar: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (cache / f".spark-1-java17-0.jsa.{ended.pid}").write_bytes(b"half")
    running = cache / f".spark-1-java17-0.jsa.{os.getppid()}"
    running.write_bytes(b"half")

    class_archive(java, cache, "spark-1", [jar])

    assert list(cache.iterdir()) == [running]


def test_archives_that_nobody_used_for_a_month_go(java: Java, cache: Path, jar: Path) -> None:
    old, recent, other = cache / "spark-0-java17-a.jsa", cache / "spark-0-java17-b.jsa", cache / "broker-java25.jsa"
    for path, days in ((old, 31), (recent, 29), (other, 31)):
        path.touch()
        os.utime(path, (time.time() - days * 86_400,) * 2)
    archive = written(class_archive(java, cache, "spark-1", [jar]))

    archive.finish(whole=True)

    assert set(cache.iterdir()) == {recent, other, archive.path}


def test_a_java_without_an_archive_of_its_own_classes_gets_one_below(tmp_path: Path, cache: Path, jar: Path) -> None:
    # As `java -Xshare:dump` does: it writes the file that its last option names.
    java = install(tmp_path / "bare", own_base=False, script='for last do :; done; echo base >"${last#*=}"')

    first = written(class_archive(java, cache, "spark-1", [jar]))
    first.finish(whole=True)
    second = class_archive(java, cache, "spark-1", [jar])

    base = next(path for path in cache.iterdir() if path.name.startswith("java17-"))
    assert f"-XX:SharedArchiveFile={base}" in first.options
    assert f"-XX:SharedArchiveFile={base}{os.pathsep}{first.path}" in second.options
    assert len(list(cache.iterdir())) == 2


def test_a_java_that_can_write_none_runs_without(tmp_path: Path, cache: Path, jar: Path) -> None:
    java = install(tmp_path / "bare", own_base=False)

    archive = class_archive(java, cache, "spark-1", [jar])

    assert archive.unfinished is None
    assert not any("Archive" in option for option in archive.options)
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_read_only_is_left_alone(
    java: Java, cache: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Asked of the system, because root may write everywhere.
    monkeypatch.setattr(os, "access", lambda *_: False)

    archive = class_archive(java, cache, "spark-1", [jar])

    assert archive.unfinished is None
    archive.finish(whole=True)


def test_a_broker_maps_an_archive_of_its_java_and_its_jars_and_no_other(java: Java, cache: Path, jar: Path) -> None:
    jvm = Jvm(java=replace(java, version=25), jars=(jar,))
    assert archive_options(jvm, cache) == ()

    archive = written(broker_archive(jvm, cache))
    archive.finish(whole=True)

    assert f"-XX:SharedArchiveFile={archive.path}" in archive_options(jvm, cache)
    jar.write_bytes(b"another")
    assert archive_options(jvm, cache) == ()
